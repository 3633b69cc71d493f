// likeness.cc: "numerically the same" has to mean "the same model", so it is asked only of rows on which two models would differ:
//
//   at least two elements that are not tiny beside the largest, not within 1 % of 1 (saturated), and no small fractions (the votes of a few
//   trees or neighbours, one-hot rows, counts: models of that kind repeat them).
//
// Only stable's row decides that. The tolerances are those of another build, batch size or instruction set in single precision: a relative
// error, and one relative to the largest element, for the elements that a subtraction left small.
//
// A near tie may fall either way by rounding, and in a retrained or quantised model by little more. So another label alone is not far: both
// models together must put the one label before the other by half of stable's spread, this row's or the usual one. Two classes of 51 % and 49 % are
// a near tie for the usual spread only.

#include "router/proxy/likeness.h"

#include <algorithm>
#include <cmath>

namespace serin::router {
namespace {

constexpr double kRelative = 1e-3, kOfLargest = 1e-5;
constexpr double kTiny = 1e-3;  // of the largest
constexpr double kSaturated = 0.01;
constexpr double kFarMargin = 0.5;
constexpr int kVoters = 20;

/// Whether every element is a multiple of 1/n, for some small n.
bool is_vote(std::span<const double> row) {
  constexpr double kPrecision = 1e-6;
  for (int n = 1; n <= kVoters; ++n) {
    const auto is_multiple = [n](double x) { return std::abs(x * n - std::round(x * n)) <= kPrecision; };
    if (std::ranges::all_of(row, is_multiple)) return true;
  }
  return false;
}

double largest_of(std::span<const double> row) {
  double largest = 0;
  for (const double x : row) largest = std::max(largest, std::abs(x));
  return largest;
}

bool is_telling(std::span<const double> row, double largest) {
  const auto tells = [largest](double x) { return std::abs(x) >= kTiny * largest && std::abs(std::abs(x) - 1) >= kSaturated; };
  return largest > 0 && std::ranges::count_if(row, tells) >= 2 && !is_vote(row);
}

bool is_far(std::span<const double> stable, std::span<const double> canary, double spread) {
  const auto theirs = static_cast<size_t>(std::ranges::max_element(stable) - stable.begin());
  const auto ours = static_cast<size_t>(std::ranges::max_element(canary) - canary.begin());
  if (theirs == ours) return false;
  const double margin = (stable[theirs] - stable[ours]) + (canary[ours] - canary[theirs]);
  return margin >= kFarMargin * spread;
}

}  // namespace

Likeness likeness_of(std::span<const double> stable, std::span<const double> canary, double usual_spread) {
  if (stable.empty() || stable.size() != canary.size()) return {};
  const auto [least, most] = std::ranges::minmax(stable);
  Likeness likeness{.spread = most - least};
  likeness.far = is_far(stable, canary, std::max(likeness.spread, usual_spread));
  const double largest = largest_of(stable);
  if (!is_telling(stable, largest)) return likeness;
  bool same = true;
  for (size_t i = 0; i < stable.size() && same; ++i)
    same = std::abs(canary[i] - stable[i]) <= kRelative * std::abs(stable[i]) + kOfLargest * largest;
  likeness.same = same;
  return likeness;
}

void UsualSpread::begin(uint64_t epoch) {
  if (epoch_.load(std::memory_order_relaxed) == epoch || epoch_.exchange(epoch, std::memory_order_relaxed) == epoch) return;
  rows_.store(0, std::memory_order_relaxed);
  mean_.store(0, std::memory_order_relaxed);
}

void UsualSpread::learn(double spread) {
  constexpr uint32_t kRows = 100;
  const uint32_t rows = std::min(rows_.load(std::memory_order_relaxed) + 1, kRows);
  rows_.store(rows, std::memory_order_relaxed);
  const double mean = value();
  mean_.store(mean + (spread - mean) / rows, std::memory_order_relaxed);
}

}  // namespace serin::router
