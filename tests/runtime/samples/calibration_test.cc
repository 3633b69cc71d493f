// calibration_test.cc: the range chosen against what its bytes really lose, number by number.

#include "runtime/samples/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace serin::samples {
namespace {

using Numbers = std::vector<float>;

std::optional<graph::Range> range_of(const std::vector<Numbers>& samples) {
  Calibration calibration(1);
  for (const Numbers& sample : samples) calibration.see(0, sample);
  for (const Numbers& sample : samples) calibration.count(0, sample);
  return calibration.range(0);
}

/// Of the numbers as bytes of a range, rounded one by one.
double squared_error(const Numbers& numbers, const graph::Range& range) {
  const graph::ByteScale bytes = *graph::byte_scale(range);
  double sum = 0;
  for (const float x : numbers) {
    const double q = std::clamp(std::nearbyint(double{x} / bytes.scale) + bytes.zero, 0.0, 255.0);
    const double error = (q - bytes.zero) * bytes.scale - x;
    sum += error * error;
  }
  return sum;
}

Numbers normal(size_t count, double mean, double deviation) {
  std::mt19937 random(7);
  std::normal_distribution<double> draw(mean, deviation);
  Numbers numbers(count);
  for (float& x : numbers) x = static_cast<float>(draw(random));
  return numbers;
}

TEST(Calibration, LosesNoMoreThanTheWholeRangeAndAboutAsLittleAsAnyThatCutsBothEndsAlike) {
  std::vector<std::pair<const char*, Numbers>> kinds{{"normal", normal(20000, 0, 1)}, {"shifted", normal(20000, 3, 2)}};
  kinds.emplace_back("with an outlier", normal(20000, 0, 1)).second[17] = 60;
  kinds.emplace_back("behind a Relu", normal(20000, -1, 2));
  for (float& x : kinds.back().second) x = std::max(x, 0.f);
  for (const auto& [kind, numbers] : kinds) {
    const auto chosen = range_of({numbers});
    ASSERT_TRUE(chosen) << kind;
    const auto [low, high] = std::ranges::minmax(numbers);
    const graph::Range whole{std::min(low, 0.f), std::max(high, 0.f)};
    const double loss = squared_error(numbers, *chosen);
    EXPECT_LE(loss, 1.02 * squared_error(numbers, whole)) << kind;
    double least = std::numeric_limits<double>::infinity();
    for (int part = 5; part <= 100; part += 5)
      least = std::min(least, squared_error(numbers, {whole.low * part / 100, whole.high * part / 100}));
    EXPECT_LE(loss, 1.05 * least) << kind;
  }
}

TEST(Calibration, AnOutlierAmongVeryManyIsCutOff) {
  std::vector<Numbers> samples(200, normal(20000, 0, 1));
  samples.push_back({1000});
  const auto range = range_of(samples);
  EXPECT_LT(range->high, 250);
  EXPECT_GT(range->high, 100);
}

TEST(Calibration, SeesAllSamples) {
  const auto range = range_of({{0.5f, 1.f}, {-3.f, 0.25f}, {2.f}});
  EXPECT_NEAR(range->low, -3, 0.1);
  EXPECT_NEAR(range->high, 2, 0.1);
}

TEST(Calibration, ARangeHoldsZero) {
  EXPECT_EQ(range_of({{2.f, 3.f}})->low, 0);
  EXPECT_EQ(range_of({{-2.f, -3.f}})->high, 0);
  EXPECT_EQ(range_of({{0.f, 0.f}})->high, 0);
  EXPECT_EQ(range_of({})->high, 0) << "nothing seen";
}

TEST(Calibration, WhatIsNotFiniteHasNoRange) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_FALSE(range_of({{1.f, 2.f}, {bad, 0.f}}));
}

TEST(Calibration, TheWidestRangeThereIsDoesNotOverflow) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto range = range_of({{-kMost, kMost, 0.f}});
  ASSERT_TRUE(range);
  EXPECT_TRUE(std::isfinite(range->low) && std::isfinite(range->high));
}

}  // namespace
}  // namespace serin::samples
