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

#include "tests/runtime/base/counted_malloc.h"

namespace {

std::atomic<uint64_t>* counter = nullptr;

__attribute__((constructor)) void map_counter() {
  const char* path = std::getenv("COUNT_ALLOCATIONS");
  const int file = path != nullptr ? ::open(path, O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ::ftruncate(file, sizeof(uint64_t)) != 0) return;
  void* page = ::mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (page != MAP_FAILED) counter = static_cast<std::atomic<uint64_t>*>(page);
}

}  // namespace

void serin::test::count_allocation() {
  if (counter != nullptr) counter->fetch_add(1, std::memory_order_relaxed);
}
