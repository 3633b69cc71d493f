// whole_body.h: collects a body in one string. It uses memory for an announced length only as bytes arrive. For the .cc files of net only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runtime/net/buffer.h"

namespace serin::net {

class WholeBody {
 public:
  /// `memory`: a reused string.
  void begin(std::string memory) {
    text_ = std::move(memory);
    text_.clear();
    filled_ = 0;
  }
  /// Size of the memory after room(). The string may have reserved more, but untouched memory takes no pages.
  size_t size_with_room(std::optional<uint64_t> left) const {
    constexpr size_t kFirst = size_t{64} << 10, kMost = size_t{1} << 20;
    if (text_.size() > filled_) return text_.size();
    const size_t more = std::clamp(filled_, kFirst, kMost);
    return filled_ + (left ? static_cast<size_t>(std::min<uint64_t>(*left, more)) : more);
  }
  /// Like BodyHandler::body_room().
  std::span<char> room(std::optional<uint64_t> left) {
    grow(text_, size_with_room(left), left ? filled_ + *left : 0);
    return {text_.data() + filled_, text_.size() - filled_};
  }
  void filled(size_t bytes) { filled_ += bytes; }
  size_t size() const { return filled_; }
  size_t capacity() const { return text_.capacity(); }
  /// Returns the bytes that have come; the next body begins.
  std::string take() {
    text_.resize(std::exchange(filled_, 0));
    return std::exchange(text_, {});
  }

 private:
  std::string text_;  // may be longer than the received bytes
  size_t filled_ = 0;
};

}  // namespace serin::net
