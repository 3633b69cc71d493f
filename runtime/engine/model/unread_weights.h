// unread_weights.h: packed weights of which only the bytes are known, for plans that are tried or only read. Nothing is packed.
//
// Kernels may keep pointers into a packed weight, so each has addresses. The system gives them memory only when they are used, which is
// never.
#pragma once

#include <sys/mman.h>

#include <functional>
#include <memory>
#include <new>

#include "kernels/backend.h"

namespace serin::engine {

class UnreadWeights final : public kernels::PackedWeights {
 protected:
  std::shared_ptr<const Buffer> make(size_t bytes, const std::function<void(std::byte*)>&) override {
    if (bytes < kOwnPages) return std::make_shared<Buffer>(bytes);
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return std::make_shared<Buffer>(static_cast<std::byte*>(pages), bytes, [](std::byte* memory, size_t size) { ::munmap(memory, size); });
  }

 private:
  static constexpr size_t kOwnPages = 4096;
};

}  // namespace serin::engine
