// buffer.h: the bytes of a connection between the socket and the parser. Grows as heads need it and is used again for the next message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace serin::net {

class Buffer {
 public:
  std::string_view data() const { return {bytes_.data() + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }

  /// At least `least` bytes of room behind the data; what was handed out before is void.
  std::span<char> room(size_t least) {
    if (begin_ == end_) begin_ = end_ = 0;
    if (bytes_.size() - end_ < least && begin_ > 0) {
      std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (bytes_.size() - end_ < least) bytes_.resize(std::max(end_ + least, bytes_.size() * 2));
    return {bytes_.data() + end_, bytes_.size() - end_};
  }
  void filled(size_t bytes) { end_ += bytes; }
  void consume(size_t bytes) { begin_ += bytes; }

  /// Gives memory back once a large head has passed through.
  void shrink(size_t keep) {
    if (begin_ != end_ || bytes_.size() <= keep) return;
    begin_ = end_ = 0;
    bytes_ = std::vector<char>();
  }

 private:
  std::vector<char> bytes_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace serin::net
