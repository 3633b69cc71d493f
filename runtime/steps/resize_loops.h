// resize_loops.h: the inner loops of resizing, for each instruction set. Internal to runtime/steps.
//
// Sums are of 32 bits, so every set gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace serin::steps {

/// The pixels that make one result, and their weights of kTapBits bits after the point.
struct Taps {
  int first = 0;
  std::vector<int32_t> weights;
};
inline constexpr int kTapBits = 22;

struct ResizeLoops {
  /// Makes one row of results of `channels` bytes each. `end`: of the memory that may be read.
  void (*across)(const uint8_t* row, const uint8_t* end, std::span<const Taps> taps, int channels, uint8_t* to);
  /// Makes one row of `bytes` results from rows that are `stride` bytes apart, the first of which is `rows`.
  void (*down)(const uint8_t* rows, size_t stride, std::span<const int32_t> weights, size_t bytes, uint8_t* to);
};

extern const ResizeLoops kPortableResize;
#if defined(__x86_64__)
extern const ResizeLoops kAvx2Resize;
#endif

/// The fastest that this machine runs.
const ResizeLoops& resize_loops();

}  // namespace serin::steps
