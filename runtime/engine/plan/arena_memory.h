// arena_memory.h: assigns each buffer of a schedule an offset in one block of memory.
//
//   Packing packing = pack({{4096, 0, 2}, {1024, 1, 3}, {4096, 3, 4}});   // bytes, first step, last step
//   packing.offsets[i], packing.bytes
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace serin::engine {

inline constexpr size_t kArenaAlignment = 64;    // a cache line, and the widest vector register
inline constexpr size_t kDeviceAlignment = 256;  // alignment of a device's allocations, which its libraries assume for every operand

/// A buffer of `bytes` that must keep its contents from step `first` to step `last`, both included.
struct Interval {
  size_t bytes = 0;
  int first = 0, last = 0;
};

struct Packing {
  std::vector<size_t> offsets;  ///< one for each interval, multiples of the alignment
  size_t bytes = 0;             ///< of the whole block
};

/// Greedy by size: two intervals that share a step never share a byte.
Packing pack(std::span<const Interval> intervals, size_t alignment = kArenaAlignment);

/// Lower bound for every packing: the most bytes that are live in one step.
size_t live_bytes(std::span<const Interval> intervals, size_t alignment = kArenaAlignment);

constexpr size_t aligned(size_t bytes, size_t alignment = kArenaAlignment) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace serin::engine
