// magnitudes_product.cc
//
// For a piece W of the columns: |(unit * scale + shift) W + bias| <= s |unit| + |shift W + bias|, s being the largest singular value of diag(scale) W. That is the
// square root of the largest eigenvalue of G = W' W, and powers of G bound it from above: all its eigenvalues are >= 0, and the Frobenius norm of G^p is the square
// root of the sum of their 2p-th powers, so
//
//   s^2 <= |G^p|_F^(1/p) <= s^2 columns^(1/2p)
//
// (Schatten norms; Horn and Johnson, Matrix Analysis, 5.6 and 7.4). Power iterations would come closer and are no bound. p is 8: three squarings. What doubles round
// away on the way is some 1e-13 of it, and less than kSlack. Where G would be large, |W|_F does.

#include "runtime/graph/proofs/magnitudes_product.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace serin::graph {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1 + 1e-6;
constexpr double kMostWork = 0x1p33;  // products of doubles: some seconds
constexpr int64_t kMostColumns = 256;
constexpr int kSquarings = 3;

double dot(std::span<const double> a, std::span<const double> b) {
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= a.size(); i += 4)
    for (size_t k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double norm_of(std::span<const double> x) { return std::sqrt(dot(x, x)); }

/// x' x of n columns, divided by `divisor`.
std::vector<double> gram(std::span<const double> x, int64_t n, double divisor) {
  const int64_t depth = static_cast<int64_t>(x.size()) / n;
  std::vector<double> result(static_cast<size_t>(n * n));
  const auto column = [&](int64_t i) { return x.subspan(static_cast<size_t>(i * depth), static_cast<size_t>(depth)); };
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j)
      result[static_cast<size_t>(i * n + j)] = result[static_cast<size_t>(j * n + i)] = dot(column(i), column(j)) / divisor;
  return result;
}

}  // namespace

double largest_singular_value(const Columns& matrix) {
  const double frobenius = norm_of(matrix.elements) * kSlack;
  if (matrix.count <= 1 || matrix.count > kMostColumns || frobenius == 0) return frobenius;
  std::vector<double> power = gram(matrix.elements, matrix.count, frobenius * frobenius);  // at most 1: no power of it overflows
  double root = 0.5;
  for (int i = 0; i < kSquarings; ++i, root /= 2) power = gram(power, matrix.count, 1);  // symmetric: its square
  const double bound = frobenius * std::pow(norm_of(power), root) * kSlack;
  return bound < frobenius ? bound : frobenius;
}

double norm_of_product(const BoundedRows& rows, const Constant& w, bool turned, std::span<const double> bias, int64_t length) {
  const int64_t depth = w.shape[turned ? 1 : 0], width = w.shape[turned ? 0 : 1];
  const double work = static_cast<double>(width) * static_cast<double>(depth) * static_cast<double>(std::min(length, kMostColumns));
  if (w.dtype != DType::kFloat32 || depth < 1 || width < 1 || width % length != 0 || work > kMostWork) return kUnbounded;
  const Elements<float> elements = w.span<float>();
  if (!elements.data()) return kUnbounded;

  Columns columns{length, depth, std::vector<double>(static_cast<size_t>(length * depth))};
  std::vector<double> constant(static_cast<size_t>(length));
  const double root = std::sqrt(static_cast<double>(depth)), spread = std::sqrt(static_cast<double>(length));
  double most = 0;
  for (int64_t first = 0; first < width; first += length) {
    for (int64_t c = 0; c < length; ++c) {
      for (int64_t i = 0; i < depth; ++i)
        columns.elements[static_cast<size_t>(c * depth + i)] =
            static_cast<double>(elements[static_cast<size_t>(turned ? (first + c) * depth + i : i * width + first + c)]);
      const double shifted = rows.shift.empty() ? 0 : dot(columns.column(c), rows.shift);
      constant[static_cast<size_t>(c)] = bias[static_cast<size_t>(first + c)] + shifted;
    }
    const double all = norm_of(columns.elements);
    for (size_t i = 0; !rows.scale.empty() && i < columns.elements.size(); ++i)
      columns.elements[i] *= rows.scale[i % static_cast<size_t>(depth)];
    // What is rounded are scale, shift, their sum and both operands of the product, one to spare; then sums of `depth` terms in f32; then what underflows.
    const double relative = 6 * kRounded + static_cast<double>(depth) * 0x1p-23;
    const double errors = relative * all * rows.norm + 4 * kTiny * root * (spread * rows.norm + all);
    const double bound = largest_singular_value(columns) * rows.radius + norm_of(constant) + errors;
    if (!(bound < kUnbounded)) return kUnbounded;  // NaN, too
    most = std::max(most, bound);
  }
  return most;
}

}  // namespace serin::graph
