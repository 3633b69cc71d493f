// weight_memory.h: Allocates memory for weights, plain and packed.
//
// A large weight gets its own pages, and huge pages if the system has some. A model is some hundred megabytes that are written once; with
// small pages more than half of the time to load one goes into page faults. The pages return to the system with the weight, whatever the
// heap does.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>

namespace serin::kernels {

constexpr std::align_val_t kWeightAlignment{64};

/// Sanitizers check only the heap, so all memory comes from it there.
constexpr bool has_own_pages(size_t bytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static_cast<void>(bytes);
  return false;
#else
  return bytes >= size_t{256} << 10;
#endif
}

/// Zeroed. Throws std::bad_alloc.
inline std::byte* allocate_weight(size_t bytes) {
  if (!has_own_pages(bytes)) return static_cast<std::byte*>(std::memset(::operator new(bytes, kWeightAlignment), 0, bytes));
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  ::madvise(pages, bytes, MADV_HUGEPAGE);  // only advice: systems without huge pages refuse it
  return static_cast<std::byte*>(pages);
}

inline void free_weight(std::byte* memory, size_t bytes) {
  if (has_own_pages(bytes))
    ::munmap(memory, bytes);
  else
    ::operator delete(memory, kWeightAlignment);
}

}  // namespace serin::kernels
