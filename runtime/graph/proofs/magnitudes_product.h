// magnitudes_product.h: how long a product with a matrix that is known can get.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/graph/constant.h"

namespace serin::graph {

/// What a step may round its operands and its result to, in parts of them (a bf16); and what an f16 is off by near 0.
inline constexpr double kRounded = 0x1p-8, kTiny = 0x1p-24;

/// Rows of unit * scale + shift, where |unit| <= radius, none of which is longer than `norm`.
struct BoundedRows {
  double norm = 0, radius = 0;
  std::vector<double> scale, shift;  ///< none: 1, 0
};

/// Of the 2-norms of each `length` neighbours of rows w + bias: an upper bound, with what is rounded on the way. w: f32 [depth, width], or turned [width, depth]; a
/// bias for each of `width`. Infinite or NaN where no bound is found. Throws LostConstant.
double norm_of_product(const BoundedRows& rows, const Constant& w, bool turned, std::span<const double> bias, int64_t length);

/// Columns of a matrix, each of them `depth` numbers that lie side by side.
struct Columns {
  int64_t count = 0, depth = 0;
  std::vector<double> elements;

  std::span<const double> column(int64_t i) const {
    return std::span(elements).subspan(static_cast<size_t>(i * depth), static_cast<size_t>(depth));
  }
};
/// An upper bound of the matrix's largest singular value; of 64 columns at most a seventh too high.
double largest_singular_value(const Columns& matrix);

}  // namespace serin::graph
