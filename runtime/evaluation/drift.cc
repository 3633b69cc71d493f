#include "runtime/evaluation/drift.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace serin::evaluation {
namespace {

/// NaN last, so that the order is total.
bool before(double a, double b) { return std::isnan(a) ? false : std::isnan(b) || a < b; }

/// P(K > x) of Kolmogorov's distribution: 2 sum (-1)^(k-1) exp(-2 k^2 x^2). For small x the same by Jacobi's identity, which converges there.
double kolmogorov_tail(double x) {
  constexpr double kChange = 1.18;
  constexpr int kTerms = 20;
  if (x <= 0) return 1;
  double sum = 0;
  if (x < kChange) {
    const double scale = -std::numbers::pi * std::numbers::pi / (8 * x * x);
    for (int k = 1; k <= kTerms; ++k) sum += std::exp((2.0 * k - 1) * (2.0 * k - 1) * scale);
    return std::clamp(1 - std::sqrt(2 * std::numbers::pi) / x * sum, 0.0, 1.0);
  }
  for (int k = 1; k <= kTerms; ++k) sum += (k % 2 == 1 ? 1 : -1) * std::exp(-2.0 * k * k * x * x);
  return std::clamp(2 * sum, 0.0, 1.0);
}

}  // namespace

SampleDistance kolmogorov_smirnov(std::vector<double> first, std::vector<double> second) {
  if (first.empty() || second.empty()) return {};
  std::ranges::sort(first, before);
  std::ranges::sort(second, before);
  const auto n = static_cast<double>(first.size()), m = static_cast<double>(second.size());
  SampleDistance found;
  size_t i = 0, j = 0;
  while (i < first.size() && j < second.size()) {
    const double value = before(second[j], first[i]) ? second[j] : first[i];
    while (i < first.size() && !before(value, first[i])) ++i;
    while (j < second.size() && !before(value, second[j])) ++j;
    found.distance = std::max(found.distance, std::abs(static_cast<double>(i) / n - static_cast<double>(j) / m));
  }
  found.p_value = kolmogorov_tail(std::sqrt(n * m / (n + m)) * found.distance);
  return found;
}

}  // namespace serin::evaluation
