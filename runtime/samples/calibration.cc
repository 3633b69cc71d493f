// calibration.cc: finds ranges on samples. It tries ranges that cut off up to nine tenths at either end.

#include "runtime/samples/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace serin::samples {

namespace {

/// A histogram as sums from its beginning, so that the errors of a range take a few subtractions.
class Sums {
 public:
  Sums(const std::vector<uint64_t>& bins, double low, double width) : low_(low), width_(width) {
    for (size_t i = 0; i < bins.size(); ++i) {
      const double n = static_cast<double>(bins[i]), x = low + (static_cast<double>(i) + 0.5) * width;
      count_.push_back(count_.back() + n);
      first_.push_back(first_.back() + n * x);
      second_.push_back(second_.back() + n * x * x);
    }
  }

  /// Of all numbers as bytes of this range: what is cut off, and the steps.
  double squared_error(double low, double high) const {
    const size_t end = count_.size() - 1, from = bin_of(low), to = bin_of(high);
    const double step = (high - low) / 255;
    return cut(0, from, low) + cut(to, end, high) + (count_[to] - count_[from]) * step * step / 12;
  }

 private:
  size_t bin_of(double x) const {
    return static_cast<size_t>(std::clamp(std::nearbyint((x - low_) / width_), 0.0, static_cast<double>(count_.size() - 1)));
  }
  double cut(size_t from, size_t to, double at) const {
    const double n = count_[to] - count_[from], first = first_[to] - first_[from], second = second_[to] - second_[from];
    return second - 2 * at * first + n * at * at;
  }

  double low_, width_;
  std::vector<double> count_{0}, first_{0}, second_{0};
};

}  // namespace

void Calibration::see(size_t value, std::span<const float> numbers) {
  Seen& seen = seen_[value];
  for (const float x : numbers) {
    seen.low = std::min(seen.low, x);
    seen.high = std::max(seen.high, x);
    seen.finite &= std::isfinite(x);
  }
}

void Calibration::count(size_t value, std::span<const float> numbers) {
  Seen& seen = seen_[value];
  if (!seen.finite || !(seen.low < seen.high)) return;
  seen.bins.resize(kBins);
  const double per_bin = kBins / (double{seen.high} - double{seen.low});
  for (const float x : numbers) {
    if (x == 0) continue;
    const auto bin = static_cast<size_t>((double{x} - double{seen.low}) * per_bin);
    ++seen.bins[std::min(bin, kBins - 1)];
  }
}

std::optional<graph::Range> Calibration::range(size_t value) const {
  const Seen& seen = seen_[value];
  if (!seen.finite) return std::nullopt;
  graph::Range best{seen.low, seen.high};
  if (seen.bins.empty()) return best;
  const Sums sums(seen.bins, seen.low, (double{seen.high} - double{seen.low}) / kBins);
  double least = std::numeric_limits<double>::infinity();
  constexpr int kTries = 100, kFewest = 10;
  for (int i = kTries; i >= (seen.low < 0 ? kFewest : kTries); --i) {
    for (int j = kTries; j >= (seen.high > 0 ? kFewest : kTries); --j) {
      const double low = double{seen.low} * i / kTries, high = double{seen.high} * j / kTries, error = sums.squared_error(low, high);
      if (!(error < least)) continue;
      least = error;
      best = {static_cast<float>(low), static_cast<float>(high)};
    }
  }
  return best;
}

}  // namespace serin::samples
