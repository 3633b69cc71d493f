#include "tests/runtime/base/counted_malloc.h"

#include <cerrno>
#include <cstdlib>

// The C library's own functions under the names that it keeps for programs that replace them.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

using serin::test::count_allocation;

extern "C" {
void* malloc(size_t size) {
  count_allocation();
  return __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
  count_allocation();
  return __libc_calloc(number, size);
}
void* realloc(void* memory, size_t size) {
  count_allocation();
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
