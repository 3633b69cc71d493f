// magnitudes_product.h: bounds the norm of a product with a known matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/graph/constant.h"

namespace serin::graph {

/// Relative error of a step that rounds its operands and its result (a bf16), and absolute error of an f16 near 0.
inline constexpr double kRounded = 0x1p-8, kTiny = 0x1p-24;

/// Rows of unit * scale + shift, with |unit| <= radius; no row is longer than `norm`.
struct BoundedRows {
  double norm = 0, radius = 0;
  std::vector<double> scale, shift;  ///< none: 1, 0
};

/// Upper bound for the 2-norms of each `length` neighbours of rows w + bias, with rounding on the way. w is f32 [depth, width], or [width,
/// depth] if `turned`; the bias has `width` elements. Infinite or NaN if no bound is found. Throws LostConstant.
double norm_of_product(const BoundedRows& rows, const Constant& w, bool turned, std::span<const double> bias, int64_t length);

/// Columns of a matrix, each with `depth` adjacent numbers.
struct Columns {
  int64_t count = 0, depth = 0;
  std::vector<double> elements;

  std::span<const double> column(int64_t i) const {
    return std::span(elements).subspan(static_cast<size_t>(i * depth), static_cast<size_t>(depth));
  }
};
/// Upper bound of the matrix's largest singular value; for 64 columns at most a seventh too high.
double largest_singular_value(const Columns& matrix);

}  // namespace serin::graph
