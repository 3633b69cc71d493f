// grid_sample.h: where a point of a GridSample looks along an axis of the input, and with which weights. Axes are independent: what a point sees of a plane
// is the product of what it sees along each axis.
//
//   x = (normalised + 1) / 2 * size - 1/2        align_corners: (normalised + 1) / 2 * (size - 1)
//     nearest   the element next to x            linear: two around it            cubic: four, Keys' kernel
// What lies outside is zero (and left out), or the element at the edge, or the input mirrored there. A coordinate that is NaN lies outside. Coordinates are
// computed in double.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/attributes.h"

namespace serin::kernels {

enum class GridMode : uint8_t { kNearest, kLinear, kCubic };
enum class GridPadding : uint8_t { kZeros, kBorder, kReflection };

/// The attributes of a GridSample.
struct GridRule {
  GridMode mode = GridMode::kLinear;
  GridPadding padding = GridPadding::kZeros;
  bool align_corners = false;

  /// The most elements that a coordinate sees along an axis.
  int64_t most_taps() const { return mode == GridMode::kNearest ? 1 : mode == GridMode::kLinear ? 2 : 4; }
};
/// Nothing, with the attribute in `why`, where one has a value that is unknown.
std::optional<GridRule> grid_rule(const Attributes& attributes, std::string& why);

struct GridTap {
  int64_t index;
  double weight;
};
struct GridTaps {
  int64_t count = 0;
  std::array<GridTap, 4> taps;  // those from count on say nothing

  const GridTap* begin() const { return taps.data(); }
  const GridTap* end() const { return taps.data() + count; }
};

class GridAxis {
 public:
  GridAxis(const GridRule& rule, int64_t size) : rule_(rule), size_(size) {}
  /// Of `size` elements those that a coordinate (-1 to 1 over the axis) sees.
  GridTaps at(double normalised) const;

 private:
  GridRule rule_;
  int64_t size_;
};

}  // namespace serin::kernels
