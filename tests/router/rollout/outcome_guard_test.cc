// The guard of reported outcomes: how often it rolls a healthy canary back, how many reports a worse one takes, and that its record decides again.

#include "router/rollout/outcome_guard.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "router/rollout/alpha_budget.h"
#include "router/rollout/outcome_process.h"
#include "router/rollout/replay.h"
#include "tests/router/rollout/simulation.h"

namespace serin::rollout {
namespace {

bool runs_long() { return std::getenv("SERIN_LONG") != nullptr; }

struct Reports {
  const char* name;
  double share, stable, canary;  ///< of the draws; chances of a good outcome
  double margin = 0;
  size_t most = 0;  ///< of the median number of reports until it is rolled back
};

/// Reports until the rollback; 0: none within `most`.
size_t until_rollback(const Reports& given, double alpha, uint64_t seed, size_t most) {
  Random random(seed);
  OutcomeGuard guard({.metric = "accuracy", .margin = given.margin}, trip_value(alpha, kThresholdShare));
  OutcomeProcess worse(given.margin);
  double good = 0.5;
  for (size_t count = 1; count <= most; ++count) {
    const bool canary = random.chance(given.share);
    const double value = random.chance(canary ? given.canary : given.stable) ? 1 : 0;
    worse.observe(canary, given.share, value, good / static_cast<double>(count));
    good += value;
    if (guard.observe({.worse = worse.state()}, {})) return count;
  }
  return 0;
}

TEST(OutcomeGuard, RollsBackAWorseCanary) {
  const Reports cases[] = {
      {"accuracy 95 -> 80 %, at 5 %", 0.05, 0.95, 0.80, 0, 9000},  {"accuracy 95 -> 50 %, at 5 %", 0.05, 0.95, 0.50, 0, 1500},
      {"accuracy 95 -> 90 %, at 50 %", 0.50, 0.95, 0.90, 0, 9000}, {"accuracy 95 -> 80 %, at 50 %", 0.50, 0.95, 0.80, 0, 1200},
      {"conversion 10 -> 0 %, at 20 %", 0.20, 0.10, 0, 0, 2500},   {"accuracy 95 -> 80 %, 5 points allowed", 0.50, 0.95, 0.80, 0.05, 2500}};
  for (const Reports& given : cases) {
    std::vector<size_t> counts;
    for (uint64_t run = 0; run < (runs_long() ? 1000U : 15U); ++run) counts.push_back(until_rollback(given, 0.001, run, 1'000'000));
    std::ranges::sort(counts);
    const size_t median = counts[counts.size() / 2];
    EXPECT_GT(counts.front(), 0U) << given.name;
    EXPECT_LE(median, given.most) << given.name;
    fmt::print("{:<40} rolled back after {} reports (median), {} (p90)\n", given.name, median, counts[counts.size() * 9 / 10]);
  }
}

TEST(OutcomeGuard, LeavesAHealthyOneAlone) {
  const Reports cases[] = {{"accuracy 95 %, at 5 %", 0.05, 0.95, 0.95},
                           {"conversion 2 %, at 50 %", 0.50, 0.02, 0.02},
                           {"better, at 20 %", 0.20, 0.90, 0.95},
                           {"worse by the margin, at 50 %", 0.50, 0.95, 0.90, 0.05}};
  constexpr double kHalf = 0.5;  // of which this guard has a share, so that a bound that does not hold shows
  const size_t runs = runs_long() ? 10'000 : 400, length = runs_long() ? 5000 : 1000;
  for (const Reports& given : cases) {
    size_t wrong = 0;
    for (uint64_t run = 0; run < runs; ++run) wrong += until_rollback(given, kHalf, run, length) > 0 ? 1 : 0;
    EXPECT_LE(static_cast<double>(wrong), kHalf * kThresholdShare * static_cast<double>(runs)) << given.name;
    fmt::print("{:<40} {} of {} rolled back, {:.0f} allowed\n", given.name, wrong, runs,
               kHalf * kThresholdShare * static_cast<double>(runs));
  }
}

TEST(OutcomeGuard, TheRecordDecidesAgain) {
  OutcomeGuard guard({.metric = "accuracy", .margin = 0.01}, 10'000);
  EXPECT_TRUE(guard.record().events.empty());
  EXPECT_EQ(guard.evidence().bits, 0);
  OutcomeProcess worse(0.01);
  bool rolled_back = false;
  for (int count = 0; !rolled_back && count < 1000; ++count) {
    worse.observe(count % 2 == 0, 0.5, count % 2 == 0 ? 0 : 1, 0.5);
    rolled_back = guard.observe({.worse = worse.state(), .difference = -1}, std::chrono::milliseconds(count));
    const Replay again = replay(guard.record());
    ASSERT_EQ(again.rolled_back, rolled_back);
    ASSERT_EQ(again.bits.back(), guard.evidence().bits);
  }
  EXPECT_TRUE(rolled_back);
  EXPECT_THAT(guard.verdict().reason, testing::HasSubstr("outcome:accuracy: differs by -1 from stable in "));
  EXPECT_EQ(guard.verdict().cause, "outcome:accuracy");
}

TEST(OutcomeGuard, WhatIsMissingHoldsTheSteps) {
  OutcomeGuard guard({.metric = "accuracy", .margin = 0}, 1000);
  EXPECT_EQ(guard.held(), "");
  OutcomeProcess worse(0);
  for (int count = 0; count < 500; ++count) worse.observe(true, 0.5, 0, 0.5);  // only the canary's failures come in
  EXPECT_FALSE(guard.observe({.worse = worse.state(), .difference = -1, .balanced = false}, {}));
  EXPECT_THAT(guard.held(), testing::HasSubstr("reports are missing more often"));
  EXPECT_TRUE(guard.observe({.worse = worse.state(), .difference = -1}, {}));
}

/// A factor below 0 would make a bet worth less than nothing, and the bound false.
TEST(OutcomeProcess, NoOutcomeTakesMoreThanTheBet) {
  Random random(7);
  for (int run = 0; run < 2000; ++run) {
    OutcomeProcess worse(0.9 * random.uniform());
    const double share = 0.001 + 0.998 * random.uniform(), mean = random.uniform();
    for (const bool canary : {false, true})
      for (const double value : {0.0, 0.3, 1.0}) {
        worse.observe(canary, share, value, mean);
        ASSERT_GT(worse.e(), 0);
        for (const double bet : worse.state().mixture) ASSERT_GE(bet, 0);
      }
  }
}

}  // namespace
}  // namespace serin::rollout
