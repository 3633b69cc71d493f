// resample.h: The elements that each output of a Resize reads along one axis, and their weights.
//
// Resizing is separable: one list of taps for each axis.
//
//   x_original = f(x_resized)         the coordinate transformation; then by mode
//     nearest   one tap, rounded by nearest_mode
//     linear    two taps around it            antialias: as many as the output is smaller, weighted by a triangle of that width
//     cubic     four, Keys' kernel            antialias: the same kernel stretched
// Taps beyond an edge read the element at the edge; with exclude_outside they have no weight and the others are scaled up. Coordinates are
// computed in double.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/tensor.h"

namespace serin::kernels {

enum class ResampleMode : uint8_t { kNearest, kLinear, kCubic };
enum class ResampleCoordinates : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNearest,
  kTfCropAndResize
};
/// kSimple is Resize before opset 11: floor if it enlarges, ceil if it shrinks.
enum class ResampleNearest : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil, kSimple };

/// The attributes of a Resize.
struct ResampleRule {
  ResampleMode mode = ResampleMode::kNearest;
  ResampleCoordinates coordinates = ResampleCoordinates::kHalfPixel;
  ResampleNearest nearest = ResampleNearest::kRoundPreferFloor;
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

/// Nothing, with the attribute in `why`, if one has an unknown value.
std::optional<ResampleRule> resample_rule(const Attributes& attributes, std::string& why);

struct ResampleAxis {
  int64_t input = 1, output = 1;
  double scale = 1;  ///< output / input as requested: the sizes are rounded
  double roi_begin = 0, roi_end = 1;

  bool is_identity(const ResampleRule& rule) const {
    const bool crops = rule.coordinates == ResampleCoordinates::kTfCropAndResize && (roi_begin != 0 || roi_end != 1);
    return input == output && scale == 1 && !crops;
  }
};

/// For each output `count` inputs and their weights, output-major.
struct ResampleTaps {
  int64_t count = 0;
  std::vector<int64_t> index;
  std::vector<double> weight;
  std::vector<bool> outside;  ///< outputs that get the extrapolation value; empty: none
};
ResampleTaps resample_taps(const ResampleRule& rule, const ResampleAxis& axis);

/// The resampling along each axis of `x`, from a Resize's operands (roi, scales, sizes; absent or empty ones are ignored). `why` if they
/// are invalid.
std::optional<std::vector<ResampleAxis>> resample_axes(const Attributes& attributes, const Shape& x, const Shape& y, const TensorView* roi,
                                                       const TensorView* scales, const TensorView* sizes, std::string& why);

}  // namespace serin::kernels
