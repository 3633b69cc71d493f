// fit_line.cc: three factors are few, so all seven sets of those that are not 0 are solved, and the best without a negative one is taken.

#include "runtime/planner/fit_line.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace serin::planner {
namespace {

constexpr size_t kFactors = 3;
using Factors = std::array<double, kFactors>;
constexpr double kWidth = 0.8;    // in doublings: steps that differ more hardly count as similar
constexpr double kOfLine = 0.02;  // weight of the line itself, as of a point that lies on it

Factors row_of(const Point& point) { return {point.size.flops / point.ns, point.size.bytes() / point.ns, 1 / point.ns}; }

/// Gaussian elimination of the normal equations over the chosen factors.
std::optional<Factors> solve(const std::vector<Point>& points, unsigned chosen) {
  std::vector<size_t> at;
  for (size_t i = 0; i < kFactors; ++i)
    if (chosen >> i & 1) at.push_back(i);
  std::array<std::array<double, kFactors + 1>, kFactors> a{};
  for (const Point& point : points) {
    const Factors row = row_of(point);
    for (size_t i = 0; i < at.size(); ++i) {
      for (size_t j = 0; j < at.size(); ++j) a[i][j] += row[at[i]] * row[at[j]];
      a[i][kFactors] += row[at[i]];
    }
  }
  for (size_t i = 0; i < at.size(); ++i) {
    size_t pivot = i;
    for (size_t k = i + 1; k < at.size(); ++k)
      if (std::abs(a[k][i]) > std::abs(a[pivot][i])) pivot = k;
    std::swap(a[i], a[pivot]);
    if (std::abs(a[i][i]) < 1e-30) return std::nullopt;
    for (size_t k = 0; k < at.size(); ++k) {
      if (k == i) continue;
      const double times = a[k][i] / a[i][i];
      for (size_t j = i; j <= kFactors; ++j) a[k][j] -= times * a[i][j];
    }
  }
  Factors factors{};
  for (size_t i = 0; i < at.size(); ++i) factors[at[i]] = a[i][kFactors] / a[i][i];
  if (std::ranges::any_of(factors, [](double factor) { return !(factor >= 0); })) return std::nullopt;
  return factors;
}

double error_of(const std::vector<Point>& points, const Factors& factors) {
  double sum = 0;
  for (const Point& point : points) {
    const Factors row = row_of(point);
    double relative = -1;
    for (size_t i = 0; i < kFactors; ++i) relative += factors[i] * row[i];
    sum += relative * relative;
  }
  return sum;
}

/// In doublings, squared.
double distance(const StepSize& a, const StepSize& b) {
  const auto doublings = [](double x, double y) {
    const double log = std::log2((x + 64) / (y + 64));
    return log * log;
  };
  return doublings(a.flops, b.flops) + doublings(a.read, b.read) + doublings(a.constants, b.constants) + doublings(a.written, b.written);
}

}  // namespace

TimeCurve::TimeCurve(std::vector<Point> points) : points_(std::move(points)) {
  double best = std::numeric_limits<double>::max();
  for (unsigned chosen = 1; chosen < 1u << kFactors; ++chosen) {
    const auto factors = solve(points_, chosen);
    if (!factors) continue;
    const double error = error_of(points_, *factors);
    if (error >= best) continue;
    best = error;
    factors_ = *factors;
  }
}

double TimeCurve::line(const StepSize& size) const { return factors_[0] * size.flops + factors_[1] * size.bytes() + factors_[2]; }

double TimeCurve::ns(const StepSize& size) const {
  const double straight = line(size);
  if (straight <= 0) return 0;
  double weights = kOfLine, sum = 0;
  for (const Point& point : points_) {
    const double expected = line(point.size);
    if (expected <= 0) continue;
    const double weight = std::exp(-distance(size, point.size) / (2 * kWidth * kWidth));
    sum += weight * std::log(point.ns / expected);
    weights += weight;
  }
  return straight * std::exp(sum / weights);
}

}  // namespace serin::planner
