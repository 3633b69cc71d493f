// boxes.h: NonMaxSuppression's arithmetic on single boxes and scores, one source for all backends.
//
// All is in f32 as in ONNX Runtime, and each product is rounded before an addition: an overlap exactly on the threshold must give the same
// result everywhere.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/float16.h"

namespace serin::kernels {

struct Box {
  float left, top, right, bottom, area;
};

namespace boxes {

SERIN_HD inline float product(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);  // nvcc would fuse a * b + c
#else
  return a * b;
#endif
}
// Of a NaN and a number the first argument: the order decides, so no backend may swap a and b.
SERIN_HD inline float smaller(float a, float b) { return b < a ? b : a; }
SERIN_HD inline float larger(float a, float b) { return a < b ? b : a; }

SERIN_HD inline Box of_sides(float left, float top, float right, float bottom) {
  return {left, top, right, bottom, product(right - left, bottom - top)};
}

/// y1, x1, y2, x2; either diagonal.
SERIN_HD inline Box from_corners(const float* box) {
  const bool down = !(box[2] < box[0]), along = !(box[3] < box[1]);
  return of_sides(along ? box[1] : box[3], down ? box[0] : box[2], along ? box[3] : box[1], down ? box[2] : box[0]);
}

/// x, y, width, height.
SERIN_HD inline Box from_center(const float* box) {
  const float half_width = product(box[2], 0.5f), half_height = product(box[3], 0.5f);
  return of_sides(box[0] - half_width, box[1] - half_height, box[0] + half_width, box[1] + half_height);
}

/// Whether a's intersection with b is more than `threshold` of their union.
SERIN_HD inline bool overlap(const Box& a, const Box& b, float threshold) {
  const float width = smaller(a.right, b.right) - larger(a.left, b.left);
  const float height = smaller(a.bottom, b.bottom) - larger(a.top, b.top);
  if (!(width > 0 && height > 0)) return false;
  const float shared = product(width, height), both = a.area + b.area - shared;
  if (!(shared > 0 && a.area > 0 && b.area > 0 && both > 0)) return false;
  return shared / both > threshold;
}

/// Ranks compare as scores do, with zeros of both signs equal. NaN, which ONNX does not define here, is above everything, as in TopK, so
/// that errors are visible.
SERIN_HD inline uint32_t rank_of(float score) {
  constexpr uint32_t kSign = uint32_t{1} << 31;
  if (score != score) return UINT32_MAX;
  if (score == 0) return kSign;
  const auto bits = std::bit_cast<uint32_t>(score);
  return bits & kSign ? ~bits : bits | kSign;
}

}  // namespace boxes

}  // namespace serin::kernels
