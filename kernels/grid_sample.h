// grid_sample.h: The elements that a point of a GridSample reads along an axis of the input, and their weights.
//
// Axes are independent: the weights in a plane are the products of those along each axis.
//
//   x = (normalised + 1) / 2 * size - 1/2        align_corners: (normalised + 1) / 2 * (size - 1)
//     nearest   the element next to x            linear: two around it            cubic: four, Keys' kernel
// Elements outside are zero (and skipped), or the element at the edge, or the mirrored input. A NaN coordinate is outside. Coordinates are
// computed in double.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/attributes.h"
#include "kernels/sampling.h"

namespace serin::kernels {

/// Nothing, with the attribute in `why`, if one has an unknown value.
std::optional<GridRule> grid_rule(const Attributes& attributes, std::string& why);

struct GridTap {
  int64_t index;
  double weight;
};
struct GridTaps {
  int64_t count = 0;
  std::array<GridTap, 4> taps;  // those from count on are unused

  const GridTap* begin() const { return taps.data(); }
  const GridTap* end() const { return taps.data() + count; }
};

class GridAxis {
 public:
  GridAxis(const GridRule& rule, int64_t size) : rule_(rule), size_(size) {}
  /// The elements, of `size`, that a coordinate (-1 to 1 over the axis) reads.
  GridTaps at(double normalised) const;

 private:
  GridRule rule_;
  int64_t size_;
};

}  // namespace serin::kernels
