// aligned_buffer.h: owned memory for tensors, aligned to 64 bytes (a cache line, an AVX-512 register).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace serin {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  /// Rounds up to the next multiple of the alignment, where the next tensor of a block may begin.
  static constexpr size_t rounded_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  AlignedBuffer() = default;
  /// The memory is uninitialised. Throws std::bad_alloc: callers check sizes from outside against limits first.
  explicit AlignedBuffer(size_t bytes) : size_(bytes) {
    if (bytes == 0) return;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded_up(bytes))));
    if (!data_) throw std::bad_alloc();
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

}  // namespace serin
