// freed_memory.cc: sets malloc's parameters, and measures how much of its memory is free.

#include "runtime/cli/serve/freed_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace serin::cli {
namespace {

/// So much may lie free at the end of each thread's heap, and a block of that size is never part of one.
constexpr int kKeptBytes = 16 << 20;
/// Below it the pages that a later request must fault in again are worth more than the memory.
constexpr size_t kWorthIt = size_t{64} << 20;
constexpr int kLooks = 3;

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

FreedMemory::FreedMemory() {
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
}

void FreedMemory::look() {
  // malloc counts as free what it has handed back, too: so the process must have grown since.
  const size_t resident = resident_bytes();
  settled_ = std::min(settled_, resident);
  const bool much = resident >= settled_ + kWorthIt && ::mallinfo2().fordblks >= kWorthIt;
  looks_ = much ? looks_ + 1 : 0;
  if (looks_ < kLooks) return;
  ::malloc_trim(0);
  settled_ = resident_bytes();
  looks_ = 0;
}

}  // namespace serin::cli
