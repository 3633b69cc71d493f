// How many requests a bad canary sees before it is rolled back, through the real facade, against the table that was simulated when the
// statistics were designed, by other programs. Medians within 15 % or one request.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "router/rollout/alpha_budget.h"
#include "router/rollout/bernoulli_mixture.h"
#include "simulation.h"

namespace serin::rollout {
namespace {

constexpr double kTolerance = 0.15;
constexpr double kBound = 1.3;  // times the table, in its p99 as well

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
  std::array<double, 4> medians, p99s;  // at 1, 5, 20, 50 %
  int runs;                             // unless SERIN_LONG=1 asks for more; delays spread by a factor of 1.5: medians are sure to 4 %
};

class ErrorRows : public testing::TestWithParam<Row> {};

TEST_P(ErrorRows, AreThoseOfTheDesign) {
  const Row& row = GetParam();
  constexpr std::array<double, 4> kWeights{1, 5, 20, 50};
  for (size_t i = 0; i < kWeights.size(); ++i) {
    const int runs = long_run() ? 2000 : row.runs;
    const Quantiles delay = detect(kWeights[i], {.stable = row.stable, .canary = row.canary}, runs);
    std::printf("  errors %-14s at %2g %%: median %5g (table %5g), p99 %5g canary requests\n", row.fault, kWeights[i], delay.median,
                row.medians[i], delay.p99);
    expect_near_table(delay.median, row.medians[i]);
    EXPECT_LE(delay.p99, kBound * row.p99s[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ErrorRows,
                         testing::Values(Row{"0.1 -> 5 %", 0.001, 0.05, {68, 85, 124, 286}, {236, 248, 324, 587}, 1000},
                                         Row{"1 -> 50 %", 0.01, 0.5, {7, 9, 13, 29}, {19, 22, 30, 55}, 2000},
                                         Row{"0.1 -> 100 %", 0.001, 1, {3, 4, 6, 14}, {3, 5, 8, 18}, 2000},
                                         Row{"1 -> 5 %", 0.01, 0.05, {240, 254, 330, 602}, {629, 691, 866, 1464}, 500},
                                         Row{"0.1 -> 1 %", 0.001, 0.01, {675, 739, 989, 1948}, {2022, 2341, 3279, 4640}, 300},
                                         Row{"1 -> 2 %", 0.01, 0.02, {2512, 2657, 3248, 5577}, {7908, 7446, 8491, 15173}, 300}));

// An answer that is cut off is as strong as a 500. It counts once the next answer shows that the endpoint lives, and what breaks meanwhile counts
// with it.
TEST(BrokenAnswers, AreAsStrongAsErrors) {
  for (const auto& [name, stable, canary] :
       {std::tuple{"0.1 -> 10 %", 0.001, 0.1}, {"1 -> 50 %", 0.01, 0.5}, {"0.1 -> 100 %", 0.001, 1.}}) {
    for (double percent : {5., 20.}) {
      const int runs = long_run() ? 2000 : 1000;
      const Quantiles errors = detect(percent, {.stable = stable, .canary = canary}, runs);
      const Quantiles cut = detect(percent, {.stable = stable, .canary = canary, .cut_off = true}, runs);
      std::printf("  cut off %-14s at %2g %%: median %5g, p99 %5g canary requests; as 500: %g, %g\n", name, percent, cut.median, cut.p99,
                  errors.median, errors.p99);
      const double together = percent / 20;  // canary requests in progress at once: 200 a second, 20 ms each
      EXPECT_LE(cut.median, (1 + 0.6 * together) * errors.median + 2);
      EXPECT_LE(cut.p99, (1.1 + together) * errors.p99 + 3);
    }
  }
}

struct LatencyRow {
  const char* fault;
  Fault shape;
  std::array<double, 3> medians, p99s;  // at 5, 20, 50 %
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
    EXPECT_LE(delay.median, kBound * row.medians[i]);
    EXPECT_LE(delay.p99, kBound * row.p99s[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, LatencyRows,
    testing::Values(LatencyRow{"x2", {.judged_on_latency = true, .canary_slower = 2}, {34, 46, 82}, {80, 103, 184}},
                    LatencyRow{"x1.3", {.judged_on_latency = true, .canary_slower = 1.3}, {661, 720, 1254}, {2524, 2563, 4768}},
                    LatencyRow{"+3 % x6", {.judged_on_latency = true, .canary_extra_tail = 0.03}, {722, 935, 1787}, {2009, 2485, 4149}}));

struct FirstAnswersRow {
  const char* fault;
  Fault shape;
  double median;
};

class FirstAnswers : public testing::TestWithParam<FirstAnswersRow> {};

// Stable is known only from the rollout, the first answers of the canary are skipped, and no slower answers are tolerated than 10 %.
TEST_P(FirstAnswers, ShowThatTheCanaryIsSlow) {
  const FirstAnswersRow& row = GetParam();
  for (const uint32_t batch : {1U, 8U}) {
    Fault fault = row.shape;
    fault.judged_on_latency = true;
    fault.known_before = false;
    fault.largest_batch = {batch, batch};
    if (batch > 1 && row.shape.canary_slower < 2) continue;  // small shifts are not found where batches vary
    for (const double percent : {1, 5, 20, 50}) {
      const Quantiles delay = detect(percent, fault, long_run() ? 2000 : 300, "guard: {latency: {floor: 0}}");
      std::printf("  unknown before, latency %-9s in batches to %u at %2g %%: median %5g, p99 %5g canary requests\n", row.fault, batch,
                  percent, delay.median, delay.p99);
      if (percent == 5 && batch == 1) {
        EXPECT_LE(delay.median, row.median);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, FirstAnswers,
                         testing::Values(FirstAnswersRow{"x10", {.canary_slower = 10}, 12}, FirstAnswersRow{"x2", {.canary_slower = 2}, 60},
                                         FirstAnswersRow{"x1.3", {.canary_slower = 1.3}, 400},
                                         FirstAnswersRow{"p99 x3", {.canary_extra_tail = 0.03, .tail_factor = 9}, 1500}));

TEST(AClassOfInputs, ThatAloneFailsIsFoundWithinTwoHundredOfIt) {
  constexpr double kClass = 0.03;  // of the traffic
  for (const double rate : {1.0, 0.5, 0.2}) {
    const Quantiles delay = detect(5, {.stable = 0.001, .canary = 0.001 + rate * kClass}, long_run() ? 500 : 250);
    std::printf(
        "  3 %% of the traffic fails in %3g %% of cases, at 5 %%: median %5g, p99 %5g canary requests, %4.1f and %4.1f of the class\n",
        100 * rate, delay.median, delay.p99, kClass * delay.median, kClass * delay.p99);
    EXPECT_LE(kClass * delay.p99, 200);
  }
}

struct OutputRow {
  const char* fault;
  Fault shape;
  const char* cause;
  double at_5, at_20;  // bounds of the median, in canary requests
};

class OutputRows : public testing::TestWithParam<OutputRow> {};

// What no status and no latency shows: answers that are wrong in the same way, found without comparing pairs.
TEST_P(OutputRows, AreFoundInLiveTraffic) {
  const OutputRow& row = GetParam();
  for (const auto& [percent, bound] : {std::pair{5.0, row.at_5}, {20.0, row.at_20}}) {
    std::vector<double> delays;
    for (uint64_t run = 0; run < 200; ++run) {
      Simulation simulation(hold_at(percent, "guard: {output: {drift: 2}}"), row.shape, run * 1'000 + 3);
      simulation.run(1'000'000);
      ASSERT_THAT(simulation.rollout().state().cause, testing::HasSubstr(row.cause));
      delays.push_back(static_cast<double>(simulation.canary_requests()));
    }
    const Quantiles delay = quantiles(std::move(delays));
    std::printf("  outputs %-26s at %2g %%: median %5g, p99 %5g canary requests, stable's first 500 looks included\n", row.fault, percent,
                delay.median, delay.p99);
    EXPECT_LE(delay.median, bound);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, OutputRows,
    testing::Values(OutputRow{"always the same label", {.first_label = {0.1, 1}}, "out_label_0_often", 250, 250},
                    OutputRow{"a label never again", {.first_label = {0.4, 0}}, "out_label_0_rarely", 600, 600},
                    OutputRow{"scores all higher", {.first_label = {0.1, 0.1}, .score_shift = {0, 0.5}}, "out_score_high", 300, 300}));

// A fault that begins when everything was long good: the control arm keeps the question open, and evidence does not pay for the good hours.
TEST(LateOnset, IsFoundWhileBaking) {
  const uint64_t runs = long_run() ? 200 : 50;  // 300,000 good requests each; the median is 1,600, and sure to 3 %
  std::vector<double> delays;
  for (uint64_t run = 0; run < runs; ++run) {
    Simulation simulation(spec_of("steps: [20, {promote: {bake: 1000h, control: 5}}]"), {.stable = 0.001, .canary = 0.001}, run);
    simulation.run(300'000);
    ASSERT_EQ(simulation.rollout().state().phase, Phase::kBaking);
    const uint64_t before = simulation.requests();
    simulation.change({.stable = 0.001, .canary = 0.2});
    simulation.run(before + 10'000'000);
    ASSERT_TRUE(simulation.rolled_back());
    EXPECT_EQ(simulation.rollout().state().cause, "err");
    delays.push_back(static_cast<double>(simulation.requests() - before));
  }
  const Quantiles delay = quantiles(std::move(delays));
  std::printf("  0.1 -> 20 %% after 300,000 requests, while baking beside 5 %% control: median %g, p99 %g requests\n", delay.median,
              delay.p99);
  EXPECT_LE(delay.median, 2'500);
}

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

// p0 = 1 %, one of two thresholds (share .055).
TEST(Thresholds, AreThoseOfTheDesign) {
  constexpr std::array<std::pair<double, double>, 4> kRows{{{1, 3}, {0.5, 7}, {0.1, 75}, {0.05, 268}}};
  Random random(5);
  for (const auto& [rate, table] : kRows) {
    std::vector<double> delays;
    for (int run = 0; run < 2000; ++run) {
      BernoulliMixture threshold(0.01);
      while (threshold.e() < trip_value(0.001, 0.055)) threshold.observe(random.chance(rate));
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
    for (int i = 0; i < 10'000 && threshold.e() < trip_value(0.001, 0.055); ++i) threshold.observe(random.chance(0.01));
    crossed += threshold.e() >= trip_value(0.001, 0.055);
  }
  EXPECT_LE(crossed, 2) << "expected 0.15 of 2000";
}

TEST(Thresholds, FindAFaultThatBeginsLate) {
  BernoulliMixture threshold(0.01);
  for (int i = 0; i < 1'000'000; ++i) threshold.observe(false);
  int errors = 0;
  while (threshold.e() < trip_value(0.001, 0.055)) {
    threshold.observe(true);
    ASSERT_LE(++errors, 50);
  }
  EXPECT_LE(errors, 32 + 10) << "the next start of the mixture is at most 32 answers away";
}

}  // namespace
}  // namespace serin::rollout
