// Series whose slope and shape are known.

#include "router/rollout/trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace serin::rollout {
namespace {

Trend trend_of(int points, const std::function<double(double)>& value) {
  Trend trend;
  for (int i = 0; i < points; ++i) trend.add({.seconds = 5. * i, .value = value(5. * i), .answers = 10. * i});
  return trend;
}

TEST(Trend, KnowsTheSlopeOfALine) {
  const auto growth = trend_of(90, [](double t) { return 100 + 2 * t; }).growth(0);
  ASSERT_TRUE(growth);
  EXPECT_NEAR(growth->slope, 2, 1e-9);
  EXPECT_NEAR(growth->least, 2, 1e-6) << "no noise";
  EXPECT_NEAR(growth->seconds, 8 * 50, 1e-9) << "from the middle of the first block to that of the last";
  EXPECT_NEAR(growth->answers, 800, 1e-9);
  EXPECT_NEAR(growth->rise, 800, 1e-6);
  EXPECT_FALSE(growth->slowing || growth->stopping);
}

TEST(Trend, NoiseLowersTheBoundOnly) {
  const auto growth = trend_of(90, [](double t) { return 2 * t + 10 * std::sin(t * t); }).growth(0);
  ASSERT_TRUE(growth);
  EXPECT_NEAR(growth->slope, 2, 0.1);
  EXPECT_LT(growth->least, 1.9);
  EXPECT_GT(growth->least, 1);
}

TEST(Trend, TellsGrowthThatSlowsDown) {
  EXPECT_TRUE(trend_of(200, [](double t) { return 1 - std::exp(-t / 300); }).growth(0)->stopping);
  EXPECT_TRUE(trend_of(200, [](double t) { return 1 - std::exp(-t / 1000); }).growth(0)->slowing);
  EXPECT_TRUE(trend_of(200, [](double t) { return std::log1p(t / 300); }).growth(0)->slowing);
  EXPECT_FALSE(trend_of(200, [](double t) { return t * t; }).growth(0)->slowing);
  EXPECT_TRUE(trend_of(200, [](double t) { return t < 500 ? t : 500; }).growth(0)->stopping);
}

TEST(Trend, ALaterWindowForgetsWhatWasBefore) {
  const Trend late = trend_of(200, [](double t) { return t < 500 ? 0 : t - 500; });
  EXPECT_LT(late.growth(0)->slope, 0.6);
  EXPECT_NEAR(late.growth(0.5)->slope, 1, 1e-9);
  EXPECT_FALSE(late.growth(0.95)) << "too few points";
  EXPECT_FALSE(trend_of(17, [](double t) { return t; }).growth(0));
}

TEST(Trend, KeepsAnyNumberInBoundedMemory) {
  const Trend trend = trend_of(100'000, [](double t) { return 3 * t; });
  EXPECT_LT(trend.points().size(), 256u);
  EXPECT_NEAR(trend.growth(0)->slope, 3, 1e-6);
  EXPECT_NEAR(trend.growth(0)->seconds, 8. / 9 * 500'000, 20'000);
}

TEST(Trend, FindsTheLargestRiseWithinATimeOrSoManyAnswers) {
  const Trend teeth = trend_of(100, [](double t) { return std::fmod(t, 100); });  // ten seconds are 20 answers
  EXPECT_EQ(teeth.largest_rise(10, 0), 10);
  EXPECT_EQ(teeth.largest_rise(0, 40), 20);
  EXPECT_EQ(teeth.largest_rise(1e9, 0), 95);
  EXPECT_EQ(trend_of(100, [](double t) { return -t; }).largest_rise(1e9, 1e9), 0);
}

}  // namespace
}  // namespace serin::rollout
