// Intervals and paired tests beside figures of SciPy, R and the papers.

#include "runtime/evaluation/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace serin::evaluation {
namespace {

TEST(Statistics, QuantilesOfTheNormalDistribution) {  // scipy.stats.norm.ppf
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 1e-12);
  EXPECT_EQ(normal_quantile(0.5), 0);
}

TEST(Statistics, WilsonInterval) {  // scipy.stats.binomtest(15, 148).proportion_ci(method="wilson")
  const Interval some = wilson_interval(15, 148, 0.95);
  EXPECT_NEAR(some.low, 0.06238639953073629, 1e-12);
  EXPECT_NEAR(some.high, 0.16048724172330803, 1e-12);
  EXPECT_EQ(wilson_interval(0, 10, 0.95).low, 0);
  EXPECT_EQ(wilson_interval(10, 10, 0.95).high, 1);
  EXPECT_GT(wilson_interval(0, 10, 0.95).high, 0.2);  // ten rows prove little
}

TEST(Statistics, McNemarIsTheSignTest) {  // scipy.stats.binomtest(min(b, c), b + c)
  EXPECT_NEAR(mcnemar_p(2, 8), 0.109375, 1e-12);
  EXPECT_NEAR(mcnemar_p(8, 2), 0.109375, 1e-12);
  EXPECT_EQ(mcnemar_p(0, 0), 1);
  EXPECT_EQ(mcnemar_p(5, 5), 1);
  EXPECT_NEAR(mcnemar_p(0, 20), std::pow(0.5, 19), 1e-15);
}

TEST(Statistics, TangoIntervalSolvesTheScoreEquation) {
  // Figures of SciPy: the likelihood under the hypothesis maximised by minimize_scalar, the bounds found by brentq.
  const Interval few = tango_interval(0, 1, 44, 0.975), many = tango_interval(12, 30, 400, 0.95);
  EXPECT_NEAR(few.low, -0.11807710137, 1e-7);
  EXPECT_NEAR(few.high, 0.05939323129, 1e-7);
  EXPECT_NEAR(many.low, -0.07291657438, 1e-7);
  EXPECT_NEAR(many.high, -0.01896547616, 1e-7);
  // No discordant row: the bounds are z^2 / (n + z^2), not 0.
  const double z = normal_quantile(0.95);
  EXPECT_NEAR(tango_interval(0, 0, 100, 0.95).low, -z * z / (100 + z * z), 1e-6);
  EXPECT_NEAR(tango_interval(3, 3, 100, 0.95).low, -tango_interval(3, 3, 100, 0.95).high, 1e-9);
}

std::vector<bool> first_right(size_t rows, size_t right) {
  std::vector<bool> list(rows);
  std::fill_n(list.begin(), right, true);
  return list;
}
Metric share_of(std::vector<bool> right) {
  return share_metric("top1", [right = std::move(right)](uint32_t row) { return right[row]; });
}

TEST(Statistics, ComparisonsSayNoWorseWorseOrOpen) {
  const auto rows = all_rows(1000);
  const Metric old = share_of(first_right(1000, 900));
  using enum Comparison::Verdict;
  EXPECT_EQ(compare(share_of(first_right(1000, 902)), old, rows, 0.005, 0.95).verdict, kNoWorse);
  EXPECT_EQ(compare(share_of(first_right(1000, 860)), old, rows, 0.005, 0.95).verdict, kWorse);
  EXPECT_EQ(compare(share_of(first_right(1000, 897)), old, rows, 0.003, 0.95).verdict, kOpen);
  EXPECT_EQ(compare(old, old, all_rows(100), 0.005, 0.95).verdict, kOpen);  // a hundred rows cannot show half a point
  EXPECT_EQ(compare(old, old, rows, 0.005, 0.95).verdict, kNoWorse);
  const Comparison worse = compare(share_of(first_right(1000, 860)), old, rows, 0.005, 0.95);
  EXPECT_EQ(worse.only_old_right, 40);
  EXPECT_EQ(worse.only_new_right, 0);
  EXPECT_NEAR(worse.difference, -0.04, 1e-12);
}

TEST(Statistics, ResamplingIsTheSameEachTimeAndPaired) {
  std::vector<double> errors;
  for (int i = 0; i < 300; ++i) errors.push_back(std::fmod(i * 0.618, 1.0));
  const auto mean = [&](double more) {
    return Metric{"mae", false, [&errors, more](RowList rows) {
                    double sum = 0;
                    for (const uint32_t row : rows) sum += errors[row] + more;
                    return sum / static_cast<double>(rows.size());
                  }};
  };
  const auto rows = all_rows(errors.size());
  const Interval one = bootstrap_interval(mean(0), rows, 0.95), two = bootstrap_interval(mean(0), rows, 0.95);
  EXPECT_EQ(one.low, two.low);
  EXPECT_EQ(one.high, two.high);
  // The standard error of the mean of 300 numbers that are even between 0 and 1 is 0.0167.
  EXPECT_NEAR(one.high - one.low, 2 * 1.96 * 0.01667, 0.006);
  const Interval difference = paired_bootstrap(mean(0.25), mean(0), rows, 0.95);  // each row alike: no spread
  EXPECT_NEAR(difference.low, 0.25, 1e-12);
  EXPECT_NEAR(difference.high, 0.25, 1e-12);
  EXPECT_EQ(compare(mean(0.25), mean(0), rows, 0.1, 0.95).verdict, Comparison::Verdict::kWorse);  // an error: less is better
  EXPECT_EQ(compare(mean(-0.25), mean(0), rows, 0.1, 0.95).verdict, Comparison::Verdict::kNoWorse);
}

/// Of 400 pairs of equally good models on 60 rows, at most about one in twenty may be called worse with 95 % confidence.
TEST(Statistics, EquallyGoodModelsAreSeldomCalledWorse) {
  uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) * 0x1p-53;
  };
  int worse = 0;
  for (int pair = 0; pair < 400; ++pair) {
    std::vector<bool> one(60), two(60);
    for (size_t row = 0; row < 60; ++row) {
      one[row] = next() < 0.8;
      two[row] = next() < 0.8;
    }
    worse += compare(share_of(one), share_of(two), all_rows(60), 0, 0.95).verdict == Comparison::Verdict::kWorse ? 1 : 0;
  }
  EXPECT_LE(worse, 32);  // 20 are expected; a chance of 1 % is above
}

}  // namespace
}  // namespace serin::evaluation
