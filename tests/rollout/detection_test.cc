// How many requests a bad canary sees before it is rolled back, through the real facade, against the table that was simulated when the
// statistics were designed, by other programs. Medians within 15 % or one request.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "router/rollout/alpha_budget.h"
#include "router/rollout/bernoulli_mixture.h"
#include "simulation.h"

namespace serin::rollout {
namespace {

constexpr double kTolerance = 0.15;

bool long_run() { return std::getenv("SERIN_LONG") != nullptr; }

struct Quantiles {
  double median = 0, p99 = 0;
};

Quantiles quantiles(std::vector<double> values) {
  std::ranges::sort(values);
  return {values[values.size() / 2], values[values.size() * 99 / 100]};
}

/// Canary requests until rollback.
Quantiles detect(double percent, const Fault& fault, int runs, const std::string& guard = "") {
  std::vector<double> delays;
  for (int run = 0; run < runs; ++run) {
    Simulation simulation(hold_at(percent, guard), fault, static_cast<uint64_t>(run) * 1'000 + 17);
    simulation.run(100'000'000);
    EXPECT_TRUE(simulation.rolled_back());
    delays.push_back(static_cast<double>(simulation.canary_requests()));
  }
  return quantiles(std::move(delays));
}

void expect_near_table(double measured, double table) { EXPECT_NEAR(measured, table, std::max(1.0, kTolerance * table)); }

struct Row {
  const char* fault;
  double stable, canary;
  std::array<double, 4> medians;  // at 1, 5, 20, 50 %
  bool slow;
};

class ErrorRows : public testing::TestWithParam<Row> {};

TEST_P(ErrorRows, AreThoseOfTheDesign) {
  const Row& row = GetParam();
  constexpr std::array<double, 4> kWeights{1, 5, 20, 50};
  for (size_t i = 0; i < kWeights.size(); ++i) {
    const int runs = row.slow && !long_run() ? 600 : 2000;
    const Quantiles delay = detect(kWeights[i], {.stable = row.stable, .canary = row.canary}, runs);
    std::printf("  errors %-14s at %2g %%: median %5g (table %5g), p99 %5g canary requests\n", row.fault, kWeights[i], delay.median,
                row.medians[i], delay.p99);
    expect_near_table(delay.median, row.medians[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ErrorRows,
                         testing::Values(Row{"0.1 -> 5 %", 0.001, 0.05, {68, 85, 124, 286}, false},
                                         Row{"1 -> 50 %", 0.01, 0.5, {7, 9, 13, 29}, false},
                                         Row{"0.1 -> 100 %", 0.001, 1, {3, 4, 6, 14}, false},
                                         Row{"1 -> 5 %", 0.01, 0.05, {240, 254, 330, 602}, false},
                                         Row{"0.1 -> 1 %", 0.001, 0.01, {675, 739, 989, 1948}, true},
                                         Row{"1 -> 2 %", 0.01, 0.02, {2512, 2657, 3248, 5577}, true}));

struct LatencyRow {
  const char* fault;
  Fault shape;
  std::array<double, 3> medians;  // at 5, 20, 50 %
};

class LatencyRows : public testing::TestWithParam<LatencyRow> {};

// The table's rows used a share of .1 and no floor; the shares of .05 cost about 6 %, the bound is 1.3 times the table.
TEST_P(LatencyRows, AreWithinAThirdOfTheDesign) {
  const LatencyRow& row = GetParam();
  constexpr std::array<double, 3> kWeights{5, 20, 50};
  for (size_t i = 0; i < kWeights.size(); ++i) {
    const Quantiles delay = detect(kWeights[i], row.shape, long_run() ? 2000 : 500, "guard: {latency: {floor: 0, skip: 0}}");
    std::printf("  latency %-14s at %2g %%: median %5g (table %5g), p99 %5g canary requests\n", row.fault, kWeights[i], delay.median,
                row.medians[i], delay.p99);
    EXPECT_LE(delay.median, 1.3 * row.medians[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, LatencyRows,
                         testing::Values(LatencyRow{"x2", {.judged_on_latency = true, .canary_slower = 2}, {34, 46, 82}},
                                         LatencyRow{"x1.3", {.judged_on_latency = true, .canary_slower = 1.3}, {661, 720, 1254}},
                                         LatencyRow{"+3 % x6", {.judged_on_latency = true, .canary_extra_tail = 0.03}, {722, 935, 1787}}));

// Failures of whole batches: one unit a batch, so the delay in requests is that of the batches.
TEST(Batches, ThatFailAreFoundWhateverTheirSizes) {
  for (const auto& [name, largest] : {std::pair<const char*, std::array<uint32_t, 2>>{"both in eights", {8, 8}},
                                      {"canary alone, stable in eights", {8, 1}},
                                      {"canary in eights, stable alone", {1, 8}}}) {
    const Fault fault{.stable = 0.01, .canary = 0.5, .whole_batch = true, .largest_batch = largest, .fixed_batch = true};
    const Quantiles delay = detect(5, fault, 300);
    const double batches = delay.median / largest[1];
    std::printf("  whole batches, 1 -> 50 %% at 5 %%, %-31s: median %4g canary requests, %4.1f batches\n", name, delay.median, batches);
    EXPECT_LE(batches, 3 * 9) << "three times the row of single requests";
  }
}

// p0 = 1 %, one of two thresholds (share .075).
TEST(Thresholds, AreThoseOfTheDesign) {
  constexpr std::array<std::pair<double, double>, 4> kRows{{{1, 3}, {0.5, 7}, {0.1, 75}, {0.05, 268}}};
  Random random(5);
  for (const auto& [rate, table] : kRows) {
    std::vector<double> delays;
    for (int run = 0; run < 2000; ++run) {
      BernoulliMixture threshold(0.01);
      while (threshold.e() < trip_value(0.001, 0.075)) threshold.observe(random.chance(rate));
      delays.push_back(static_cast<double>(threshold.answers()));
    }
    const Quantiles delay = quantiles(std::move(delays));
    std::printf("  threshold 1 %%, canary at %g %%: median %g (table %g), p99 %g\n", 100 * rate, delay.median, table, delay.p99);
    expect_near_table(delay.median, table);
  }
}

TEST(Thresholds, AreRarelyCrossedByACanaryAtThem) {
  Random random(6);
  int crossed = 0;
  for (int run = 0; run < 2000; ++run) {
    BernoulliMixture threshold(0.01);
    for (int i = 0; i < 10'000 && threshold.e() < trip_value(0.001, 0.075); ++i) threshold.observe(random.chance(0.01));
    crossed += threshold.e() >= trip_value(0.001, 0.075);
  }
  EXPECT_LE(crossed, 2) << "expected 0.15 of 2000";
}

TEST(Thresholds, FindAFaultThatBeginsLate) {
  BernoulliMixture threshold(0.01);
  for (int i = 0; i < 1'000'000; ++i) threshold.observe(false);
  int errors = 0;
  while (threshold.e() < trip_value(0.001, 0.075)) {
    threshold.observe(true);
    ASSERT_LE(++errors, 50);
  }
  EXPECT_LE(errors, 32 + 10) << "the next start of the mixture is at most 32 answers away";
}

}  // namespace
}  // namespace serin::rollout
