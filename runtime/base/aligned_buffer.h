// aligned_buffer.h: owned memory for tensors, aligned to 64 bytes (a cache line, an AVX-512 register).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace serin {

/// Bytes to request from the heap for a block of at least that many. Large ones come in steps, so that the block that a request's body has left
/// fits its tensor, and the other way round. Bytes that nothing touches take no pages.
constexpr size_t heap_block(size_t bytes) {
  constexpr size_t kLarge = size_t{1} << 20, kStep = size_t{256} << 10;
  return bytes < kLarge ? bytes : (bytes + kStep - 1) / kStep * kStep;
}

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  /// Rounds up to the next multiple of the alignment, where the next tensor of a block may begin.
  static constexpr size_t rounded_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  AlignedBuffer() = default;
  /// The memory is uninitialised. Throws std::bad_alloc: callers check sizes from outside against limits first.
  explicit AlignedBuffer(size_t bytes) : size_(bytes) {
    if (bytes == 0) return;
    // Before 2.38, glibc's aligned_alloc does not find the free block that such a buffer leaves: the heap grows with each request.
    size_t room = heap_block(rounded_up(bytes) + kAlignment);
    memory_.reset(std::malloc(room));
    if (!memory_) throw std::bad_alloc();
    void* start = memory_.get();
    data_ = static_cast<std::byte*>(std::align(kAlignment, rounded_up(bytes), start, room));
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : memory_(std::move(other.memory_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace serin
