// count_allocations.cc: a library for LD_PRELOAD that counts calls of malloc, calloc, realloc and their like.
//
// The count lies in the first eight bytes of the file that COUNT_ALLOCATIONS names, so that bench/route reads it while the program runs.
// Calls before the file is mapped are not counted: they belong to no request.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

std::atomic<uint64_t>* counter = nullptr;

void count() {
  if (counter != nullptr) counter->fetch_add(1, std::memory_order_relaxed);
}

__attribute__((constructor)) void map_counter() {
  const char* path = std::getenv("COUNT_ALLOCATIONS");
  const int file = path != nullptr ? ::open(path, O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ::ftruncate(file, sizeof(uint64_t)) != 0) return;
  void* page = ::mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (page != MAP_FAILED) counter = static_cast<std::atomic<uint64_t>*>(page);
}

}  // namespace

extern "C" {
void* malloc(size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(size_t number, size_t bytes) {
  count();
  return __libc_calloc(number, bytes);
}
void* realloc(void* old, size_t bytes) {
  count();
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** result, size_t alignment, size_t bytes) {
  *result = memalign(alignment, bytes);
  return *result == nullptr ? 12 /* ENOMEM */ : 0;
}
}
