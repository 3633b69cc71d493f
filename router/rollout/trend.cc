// trend.cc: the window is cut into nine blocks. The eight steps between their means d_1..d_8 show the growth and its noise:
//
//   slope  = sum d / time              least = (sum d - t sqrt(8) sd(d)) / time        t = 4.785: Student, 7 degrees of freedom, 99.9 %
//
// This is the interval of a random walk with drift, the roughest noise that memory has. Noise around a level makes it wider than needed.
// Growth lasts where d_5 + .. + d_8 is above 0.85 (d_1 + .. + d_4) by a standard deviation. A straight line passes. Growth towards a plateau
// P (1 - exp(-t/T)) does not once it has grown by 0.28 P, logarithmic growth c ln(1 + t/T) not beyond 0.33 c.

#include "router/rollout/trend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace serin::rollout {
namespace {

constexpr size_t kMostPoints = 256, kLeastPoints = 18;
constexpr size_t kBlocks = 9, kSteps = kBlocks - 1;
constexpr double kStudent = 4.785;
constexpr double kLasting = 0.85, kStopping = 0.5;

TrendPoint sum(const TrendPoint& a, const TrendPoint& b) { return {a.seconds + b.seconds, a.value + b.value, a.answers + b.answers}; }
TrendPoint part(const TrendPoint& a, double by) { return {a.seconds / by, a.value / by, a.answers / by}; }

}  // namespace

void Trend::clear() { *this = {}; }

void Trend::add(const TrendPoint& point) {
  pending_ = pending_count_ == 0 ? point : sum(pending_, point);
  if (++pending_count_ < stride_) return;
  points_.push_back(part(pending_, static_cast<double>(stride_)));
  pending_count_ = 0;
  if (points_.size() < kMostPoints) return;
  for (size_t i = 0; i < kMostPoints / 2; ++i) points_[i] = part(sum(points_[2 * i], points_[2 * i + 1]), 2);
  points_.resize(kMostPoints / 2);
  stride_ *= 2;
}

std::optional<Growth> Trend::growth(double after) const {
  const auto skipped = static_cast<size_t>(after * static_cast<double>(points_.size()));
  if (points_.size() < skipped + kLeastPoints) return std::nullopt;
  const size_t each = (points_.size() - skipped) / kBlocks;
  std::array<TrendPoint, kBlocks> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    const auto begin = points_.end() - static_cast<std::ptrdiff_t>((kBlocks - i) * each);
    blocks[i] = part(std::accumulate(begin + 1, begin + static_cast<std::ptrdiff_t>(each), *begin, sum), static_cast<double>(each));
  }
  std::array<double, kSteps> steps{};
  for (size_t i = 0; i < kSteps; ++i) steps[i] = blocks[i + 1].value - blocks[i].value;
  const double early = std::accumulate(steps.begin(), steps.begin() + kSteps / 2, 0.0);
  const double late = std::accumulate(steps.begin() + kSteps / 2, steps.end(), 0.0);
  const double mean = (early + late) / kSteps;
  double squares = 0;
  for (const double step : steps) squares += (step - mean) * (step - mean);
  const double deviation = std::sqrt(squares / (kSteps - 1));

  Growth growth{.rise = early + late, .first = blocks.front().value, .last = blocks.back().value};
  growth.seconds = blocks.back().seconds - blocks.front().seconds;
  growth.answers = blocks.back().answers - blocks.front().answers;
  if (growth.seconds <= 0) return std::nullopt;
  growth.slope = growth.rise / growth.seconds;
  growth.least = (growth.rise - kStudent * std::sqrt(kSteps) * deviation) / growth.seconds;
  growth.slowing = late - kLasting * early <= deviation * std::sqrt(kSteps / 2. * (1 + kLasting * kLasting));
  growth.stopping = late < kStopping * early;
  return growth;
}

double Trend::largest_rise(double seconds, double answers) const {
  double largest = 0;
  for (size_t i = 0; i < points_.size(); ++i)
    for (size_t j = i + 1; j < points_.size(); ++j) {
      if (points_[j].seconds - points_[i].seconds > seconds && points_[j].answers - points_[i].answers > answers) break;
      largest = std::max(largest, points_[j].value - points_[i].value);
    }
  return largest;
}

}  // namespace serin::rollout
