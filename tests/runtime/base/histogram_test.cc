// histogram_test.cc: quantiles against sorted samples.

#include "runtime/base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace serin {
namespace {

using namespace std::chrono_literals;

TEST(LatencyHistogram, QuantilesAreWithinOnePercentOfTheSortedSamples) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> microseconds(8, 1.5);
  LatencyHistogram histogram;
  std::vector<double> samples;
  for (int i = 0; i < 100'000; ++i) {
    samples.push_back(std::max(1.0, microseconds(random)));
    histogram.record(std::chrono::nanoseconds(static_cast<int64_t>(samples.back() * 1000)));
  }
  std::ranges::sort(samples);
  for (const double q : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = samples[static_cast<size_t>(q * 100'000)] * 1000;
    EXPECT_NEAR(static_cast<double>(histogram.quantile(q).count()), exact, exact * 0.012 + 1000) << q;
  }
}

TEST(LatencyHistogram, ExtremesAreKept) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0ns);
  histogram.record(-5ns);
  histogram.record(0ns);
  EXPECT_LE(histogram.quantile(1), 1us);
  histogram.record(std::chrono::hours(100));
  EXPECT_GT(histogram.quantile(1), 1h);
  EXPECT_EQ(histogram.count(), 3u);
}

TEST(LatencyHistogram, MergingIsAdding) {
  LatencyHistogram a, b;
  a.record(10ms, 99);
  b.record(1s);
  a.merge(b);
  EXPECT_EQ(a.count(), 100u);
  EXPECT_NEAR(static_cast<double>(a.quantile(0.99).count()), 10e6, 1e5);
  EXPECT_NEAR(static_cast<double>(a.quantile(1).count()), 1e9, 1e7);
}

}  // namespace
}  // namespace serin
