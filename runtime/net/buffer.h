// buffer.h: a byte buffer between a socket and a parser, or between two sockets. It grows as needed and is reused for the next message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/aligned_buffer.h"

namespace serin::net {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    capacity_ = std::exchange(other.capacity_, 0);
    begin_ = std::exchange(other.begin_, 0);
    end_ = std::exchange(other.end_, 0);
    return *this;
  }

  std::string_view data() const { return {bytes_.get() + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  size_t capacity() const { return capacity_; }

  /// Returns at least `least` bytes of room after the data; earlier views become invalid.
  std::span<char> room(size_t least) {
    if (begin_ == end_) begin_ = end_ = 0;
    if (capacity_ - end_ < least) make_room(least);
    return {bytes_.get() + end_, capacity_ - end_};
  }
  void filled(size_t bytes) { end_ += bytes; }
  void consume(size_t bytes) { begin_ += bytes; }
  void append(std::string_view bytes) {
    std::memcpy(room(bytes.size()).data(), bytes.data(), bytes.size());
    filled(bytes.size());
  }
  void clear() { begin_ = end_ = 0; }

 private:
  void make_room(size_t least) {
    const size_t held = size();
    if (capacity_ - held >= least) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, held);
    } else {
      const size_t capacity = std::max(held + least, capacity_ * 2);
      auto bytes = std::make_unique_for_overwrite<char[]>(capacity);
      if (held > 0) std::memcpy(bytes.get(), bytes_.get() + begin_, held);
      bytes_ = std::move(bytes);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = held;
  }

  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

/// Unused buffers of an io thread: a connection that waits for its next message has none, and a busy connection allocates none.
class BufferPool {
 public:
  Buffer take() {
    if (free_.empty()) return {};
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  /// Returns a buffer. One that has grown large is freed, because its memory is needed elsewhere.
  void give(Buffer&& buffer) {
    if (buffer.capacity() == 0 || buffer.capacity() > kLargest || free_.size() >= kMost) {
      buffer = Buffer();
      return;
    }
    buffer.clear();
    free_.push_back(std::move(buffer));
  }

 private:
  static constexpr size_t kLargest = 2 << 20, kMost = 64;
  std::vector<Buffer> free_;
};

/// Resizes a string that collects a body of `whole` bytes; 0: its length is not known. It reserves ahead, at most 16 times the size: a string
/// that only doubles copies its bytes each time, and leaves blocks of all sizes in the heap. Reserved memory that nothing touches takes no pages.
inline void grow(std::string& text, size_t size, uint64_t whole) {
  constexpr size_t kAhead = 16;
  if (size > text.capacity() && whole > size)
    text.reserve(heap_block(static_cast<size_t>(std::min<uint64_t>(whole, kAhead * size)) + 1) - 1);
  text.resize(size);
}

}  // namespace serin::net
