// compare.h: measures how far a tensor is from its expected value.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/tensor.h"

namespace serin::cli {

struct Tolerance {
  double rtol = 1e-4, atol = 1e-5;
  bool absolute_atol = false;  ///< atol is absolute, as in NumPy; otherwise its unit is the largest expected element
};

struct Comparison {
  bool match = false;
  std::string why_not;  ///< "shape [2,3], expected [3,2]"; "7 of 20 elements differ, first at [0,4]: 0.5, expected 0.25"
  double max_absolute = 0, max_relative = 0;           ///< over elements that are finite in both tensors
  int64_t max_absolute_at = -1, max_relative_at = -1;  ///< index of the element; -1: all are equal
  double relative_l2 = 0;                              ///< |a - b| / |b| as vectors, over the same elements
  int64_t mismatches = 0;
  bool not_finite = false;  ///< an element that differs is NaN or infinite in one of them
};

/// Floats match if |a - b| <= rtol |b| + atol max|b|. NaN equals NaN, and infinities equal themselves. Everything else, dtype and shape
/// included, must be equal.
Comparison compare(const TensorView& actual, const TensorView& expected, const Tolerance& tolerance);

/// Returns the position of element `index` in a tensor of that shape, for example "[1,0,4]".
std::string position(const Shape& shape, int64_t index);

}  // namespace serin::cli
