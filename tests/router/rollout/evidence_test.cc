// The processes themselves, against values worked out by hand.

#include <gmock/gmock.h>

#include <cmath>

#include "router/rollout/alpha_budget.h"
#include "router/rollout/bernoulli_mixture.h"
#include "router/rollout/change_point.h"
#include "router/rollout/event_guard.h"
#include "router/rollout/event_process.h"
#include "router/rollout/threshold_guard.h"

namespace serin::rollout {
namespace {

using testing::HasSubstr;

TEST(AlphaBudget, SumsToOne) {
  EXPECT_NEAR(
      kErrorShare + kRejectedShare + kDeadlineShare + kLatencyShare + kOutputShare + kShadowShare + kThresholdShare + kResourceShare, 1,
      1e-12);
  EXPECT_NEAR(trip_value(0.001, kErrorShare), 3333.33, 0.01);
}

TEST(ChangePoint, SpendsNoMoreThanOne) {
  EXPECT_EQ(change_point_mass(0), 0.5);
  EXPECT_NEAR(change_point_mass(1), 0.5 / 2.1097 / (2 * std::log(2) * std::log(2)), 1e-15);
  double sum = 0;
  for (uint64_t k = 0; k < 10'000'000; ++k) sum += change_point_mass(k);
  EXPECT_LT(sum, 1);
  EXPECT_NEAR(sum + 0.5 / 2.1097 / std::log(1e7), 1, 1e-4) << "the rest of the series is about an integral";
}

// One canary event at w = 5 %: L_j = 2^j / (0.95 + 2^j 0.05); half of the mass is at stake.
TEST(EventProcess, FirstEventsByHand) {
  double mean = 0;
  for (int j = 1; j <= 8; ++j) mean += std::exp2(j) / (0.95 + std::exp2(j) * 0.05) / 8;
  EventProcess process;
  process.observe(Arm::kCanary, 0.05);
  EXPECT_NEAR(process.e(), 0.5 * mean + 0.5, 1e-12);

  // Then one of stable's: every bet shrinks by 1 / (0.95 + 2^j 0.05), and a second bet has begun.
  const double second = change_point_mass(1);
  mean = 0;
  for (int j = 1; j <= 8; ++j) {
    const double down = 1 / (0.95 + std::exp2(j) * 0.05);
    mean += (0.5 * std::exp2(j) * down + second) * down / 8;
  }
  process.observe(Arm::kStable, 0.05);
  EXPECT_NEAR(process.e(), mean + 0.5 - second, 1e-12);
}

TEST(EventProcess, IsAMartingaleAtTheBoundary) {
  for (double ratio : {1.0, 1.5})
    for (double share : {0.01, 0.2, 0.9}) {
      EventProcess canary(ratio), stable(ratio);
      canary.observe(Arm::kCanary, share);
      stable.observe(Arm::kStable, share);
      const double q0 = ratio * share / (1 - share + ratio * share);
      EXPECT_NEAR(q0 * canary.e() + (1 - q0) * stable.e(), 1, 1e-12);
    }
}

TEST(EventProcess, KnowsNothingWhereThereIsNoChoice) {
  EventProcess process;
  for (int i = 0; i < 100; ++i) process.observe(Arm::kCanary, 1);
  for (int i = 0; i < 100; ++i) process.observe(Arm::kStable, 0);
  EXPECT_NEAR(process.e(), 1, 1e-9);
}

TEST(EventProcess, StaysFiniteOnADelugeAndOnNonsense) {
  EventProcess process;
  for (int i = 0; i < 10'000; ++i) process.observe(Arm::kCanary, 1e-6);
  EXPECT_TRUE(std::isfinite(process.e()));
  process.observe(Arm::kCanary, -3);
  process.observe(Arm::kStable, 7);
  EXPECT_TRUE(std::isfinite(process.e()));
}

TEST(EventProcess, FindsAFaultThatBeginsLate) {
  EventProcess process;
  for (int i = 0; i < 100'000; ++i) process.observe(i % 20 == 0 ? Arm::kCanary : Arm::kStable, 0.05);
  EXPECT_LT(process.e(), 1);
  int more = 0;
  for (; process.e() < trip_value(0.001, kErrorShare); ++more) process.observe(Arm::kCanary, 0.05);
  EXPECT_LE(more, 12) << "two hundred thousand good hours cost a handful of errors";
}

TEST(BernoulliMixture, FirstAnswersByHand) {
  BernoulliMixture threshold(0.01);
  threshold.observe(true);
  const double mean = (2 + 4 + 8 + 16 + 32 + 64 + 95 + 95) / 8.0;
  EXPECT_NEAR(threshold.e(), 0.5 * mean + 0.5, 1e-9);
  threshold.observe(false);
  const double after = (2 * .98 + 4 * .96 + 8 * .92 + 16 * .84 + 32 * .68 + 64 * .36 + 95 * .05 + 95 * .05) / 8.0 / .99;
  EXPECT_NEAR(threshold.e(), 0.5 * after + 0.5, 1e-9);
}

TEST(BernoulliMixture, IsAMartingaleAtTheLimit) {
  for (double p0 : {0.001, 0.1, 0.5, 0.97}) {
    BernoulliMixture bad(p0), good(p0);
    bad.observe(true);
    good.observe(false);
    EXPECT_NEAR(p0 * bad.e() + (1 - p0) * good.e(), 1, 1e-9) << p0;
  }
}

TEST(EventGuard, APairNeverGainsOnAverage) {
  // Whatever the dependence between the halves of a pair: with equal rates the mean factor is at most 1.
  const double p = 0.3;
  for (double both : {0.0, 0.09, 0.3}) {
    const auto e_after = [](bool stable, bool canary) {
      EventGuard guard("rej", 1, 1e9);
      const auto half = [](bool bad) { return bad ? std::optional(0.5) : std::nullopt; };
      guard.observe_pair(half(stable), half(canary), {});
      return std::exp2(guard.evidence().bits);
    };
    const double mean = (p - both) * (e_after(false, true) + e_after(true, false)) + both * e_after(true, true) +
                        (1 - 2 * p + both) * e_after(false, false);
    EXPECT_LE(mean, 1 + 1e-12) << both;
  }
}

TEST(EventGuard, RecordsItsLatestEvents) {
  EventGuard guard("err", 1, trip_value(0.001, kErrorShare));
  for (int i = 0; i < 100; ++i) guard.observe(Arm::kStable, 0.05, std::chrono::milliseconds(i));
  while (!guard.observe(Arm::kCanary, 0.05, std::chrono::milliseconds(200))) continue;
  const auto events = guard.events();
  ASSERT_GE(events.size(), 64u);
  ASSERT_LE(events.size(), 128u);
  EXPECT_EQ(events.front().arm, Arm::kStable);
  EXPECT_EQ(events.back().at, std::chrono::milliseconds(200));
  EXPECT_GE(events.back().bits, guard.evidence().bits_to_trip);
  const auto canary_events = guard.evidence().canary_events;
  EXPECT_THAT(guard.verdict("at 5 % of traffic").reason,
              HasSubstr("err: " + std::to_string(canary_events) + " of the last " + std::to_string(canary_events)))
      << "the good time before is left out of the sentence";
}

ThresholdGuard one_percent(bool ask_stable) {
  return ThresholdGuard({.name = "threshold:errors",
                         .text = "errors above 1 %",
                         .p0 = 0.01,
                         .trip_value = trip_value(0.001, 0.15),
                         .ask_stable = ask_stable});
}

// Bad input R10 (tests/README.md)
TEST(ThresholdGuard, R10HoldsWhereStableBreachesToo) {
  ThresholdGuard guard = one_percent(true);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(guard.observe(Arm::kStable, true, 0.5, false));
    EXPECT_FALSE(guard.observe(Arm::kCanary, true, 0.5, false));
  }
  EXPECT_TRUE(guard.holding());
  int answers = 0;
  for (; guard.holding(); ++answers) EXPECT_FALSE(guard.observe(Arm::kCanary, false, 0.5, false));
  EXPECT_LE(answers, 500) << "the hold ends soon after the outage";
}

TEST(ThresholdGuard, RollsBackWhereAsked) {
  ThresholdGuard both = one_percent(false);
  int errors = 1;
  while (!both.observe(Arm::kCanary, true, 0.5, false)) ++errors;
  EXPECT_EQ(errors, 3);
  ThresholdGuard alone = one_percent(true);
  for (errors = 1; !alone.observe(Arm::kCanary, true, 1, true);) ++errors;
  EXPECT_EQ(errors, 3) << "a stable without traffic cannot speak for the canary";
}

}  // namespace
}  // namespace serin::rollout
