// The latency guard: its limits, its process by hand, cold endpoints, and requests whose time is not known.

#include <gmock/gmock.h>

#include <cmath>

#include "router/rollout/cold_start.h"
#include "router/rollout/latency_guards.h"
#include "router/rollout/latency_limits.h"
#include "router/rollout/rank_process.h"
#include "simulation.h"

namespace serin::rollout {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

Guard exact_guard() {
  Guard guard;
  guard.latency_slack = 0;
  guard.latency_floor = nanoseconds(0);
  guard.latency_skip = 0;
  return guard;
}

TEST(LatencyLimits, AreLearnedAtPowersOfTwoAndApplyToRequestsDrawnFromThenOn) {
  LatencyLimits limits(exact_guard(), Baseline());
  EXPECT_EQ(limits.missing(), 16U);
  for (int i = 1; i <= 16; ++i) limits.learn(milliseconds(i), milliseconds(100 + i));
  EXPECT_EQ(limits.missing(), 0U);
  EXPECT_EQ(limits.at(milliseconds(115)), nullptr) << "drawn before anything was known";
  const auto* early = limits.at(milliseconds(116));
  ASSERT_NE(early, nullptr);
  EXPECT_NEAR(static_cast<double>((*early)[LatencyLimits::kP50].stable.count()), 8e6, 1e5);
  EXPECT_NEAR(static_cast<double>((*early)[LatencyLimits::kTwiceP99].canary.count()), 32e6, 5e5);

  for (int i = 0; i < 16; ++i) limits.learn(milliseconds(100), milliseconds(200));
  EXPECT_EQ(limits.learned(), 32U);
  EXPECT_LT((*limits.at(milliseconds(199)))[LatencyLimits::kP90].stable, milliseconds(20)) << "a request drawn earlier";
  EXPECT_GT((*limits.at(milliseconds(200)))[LatencyLimits::kP90].stable, milliseconds(90));
}

TEST(LatencyLimits, TolerateSlackAndFloorOnTheCanary) {
  Guard guard = exact_guard();
  guard.latency_slack = 0.5;
  guard.latency_floor = milliseconds(3);
  Baseline before;
  before.record(milliseconds(10), 100);
  const LatencyLimits limits(guard, before);
  const auto& p50 = (*limits.at(milliseconds(0)))[LatencyLimits::kP50];
  EXPECT_NEAR(static_cast<double>((p50.canary - p50.stable).count()), 8e6, 1e5);
}

// A day later the service has another load: the limits are those of the last ten thousand answers, not of the first.
TEST(LatencyLimits, FollowTheLoad) {
  Guard guard = exact_guard();
  guard.latency_baseline = 1000;
  LatencyLimits limits(guard, Baseline());
  for (int i = 0; i < 1000; ++i) limits.learn(milliseconds(10), milliseconds(i));
  for (int i = 0; i < 1000; ++i) limits.learn(milliseconds(50), milliseconds(1000 + i));
  EXPECT_NEAR(static_cast<double>((*limits.at(milliseconds(2000)))[0].stable.count()), 50e6, 5e5);
  EXPECT_EQ(limits.learned(), 1000U);
}

TEST(RankProcess, NoRankGainsOnAverage) {
  for (const bool one_sided : {false, true})
    for (const double share : {0.01, 0.05, 0.5, 0.95})
      for (size_t rank = 0; rank < RankProcess::kRanks; ++rank) {
        RankProcess canary, stable;
        canary.observe(Arm::kCanary, rank, share, one_sided);
        stable.observe(Arm::kStable, rank, share, one_sided);
        EXPECT_NEAR(share * canary.e() + (1 - share) * stable.e(), 1, 1e-9) << "rank " << rank;
      }
}

TEST(RankProcess, FirstAnswerByHand) {
  RankProcess process;
  process.observe(Arm::kCanary, 8, 0.05);
  double mean = 0;
  for (const double ratio : RankProcess::ratios()[8]) mean += ratio / (0.95 + 0.05 * ratio) / 8;
  EXPECT_NEAR(process.e(), 0.5 * mean + 0.5, 1e-9);
}

TEST(RankProcess, SlowerAnswersAreStrongerEvidence) {
  for (size_t rank = 1; rank < RankProcess::kRanks; ++rank)
    for (size_t shape = 0; shape < RankProcess::kShapes; ++shape)
      EXPECT_GE(RankProcess::ratios()[rank][shape], RankProcess::ratios()[rank - 1][shape]);
}

// A share that is too high is safe where fast answers are no evidence, and only there.
TEST(RankProcess, OneSidedATooHighShareIsSafe) {
  for (size_t rank = 0; rank < RankProcess::kRanks; ++rank) {
    RankProcess canary, stable;
    canary.observe(Arm::kCanary, rank, 0.1, /*one_sided=*/true);
    stable.observe(Arm::kStable, rank, 0.1, /*one_sided=*/true);
    EXPECT_LE(0.05 * canary.e() + 0.95 * stable.e(), 1 + 1e-12) << "rank " << rank;
  }
  RankProcess canary, stable;
  canary.observe(Arm::kCanary, 0, 0.1);
  stable.observe(Arm::kStable, 0, 0.1);
  EXPECT_GT(0.05 * canary.e() + 0.95 * stable.e(), 1);
}

TEST(RankProcess, ATolerancePermitsAsManyMoreSlowAnswers) {
  const double tolerated = 2, share = 0.05, rate = 0.1;  // of slow answers on stable; twice that on the canary
  for (size_t rank = 1; rank < RankProcess::kRanks; ++rank) {
    RankProcess canary(tolerated), stable(tolerated), fast(tolerated);
    canary.observe(Arm::kCanary, rank, share);
    stable.observe(Arm::kStable, rank, share);
    fast.observe(Arm::kStable, 0, share);
    const double rest = 1 - share * tolerated * rate - (1 - share) * rate;
    EXPECT_LE(share * tolerated * rate * canary.e() + (1 - share) * rate * stable.e() + rest * fast.e(), 1 + 1e-9);
  }
}

TEST(RankProcess, StaysFiniteOnADelugeAndOnNonsense) {
  RankProcess process;
  for (int i = 0; i < 100'000; ++i) process.observe(Arm::kCanary, 8, 0.01);
  EXPECT_TRUE(std::isfinite(process.e()));
  for (const double share : {-1.0, 0.0, 1.0, 2.0}) process.observe(Arm::kStable, 99, share);
  EXPECT_TRUE(std::isfinite(process.e()));
}

/// Stable answers in 1 to 100 ms, all equally likely.
Baseline even_baseline() {
  Baseline baseline;
  for (int i = 1; i <= 100; ++i) baseline.record(milliseconds(i), 100);
  return baseline;
}

Observation answer(Arm arm, milliseconds latency, uint32_t endpoint = 1) {
  return {.arm = arm, .weight_ppm = 50'000, .latency = latency, .batch = BatchId{1, 0, 1}, .endpoint = endpoint};
}

double bits(const LatencyGuards& guards) {
  double bits = 0;
  guards.each([&](const auto& guard) { bits = guard.evidence().bits; });
  return bits;
}

/// As the judge puts them together.
struct Judged : LatencyGuards {
  explicit Judged(const Guard& guard) : LatencyGuards(guard, false, even_baseline()), cold(guard.latency_skip) {}
  ColdStart cold;
};

std::optional<Verdict> judge(Judged& guards, const Observation& observation) {
  const bool canary = observation.arm == Arm::kCanary;
  if (canary)
    guards.cold.answered(observation.endpoint);
  else
    guards.learn(observation, milliseconds(1000));
  if (canary && guards.cold.is_cold(observation.endpoint)) return std::nullopt;
  return guards.observe(observation, 0.05, guards.cold.all_warm(), milliseconds(1000));
}

TEST(LatencyGuards, AColdEndpointIsNotJudgedAndAMirroredRequestWarmsIt) {
  Guard guard = exact_guard();
  guard.latency_skip = 5;
  Judged guards(guard);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(judge(guards, answer(Arm::kCanary, milliseconds(900))));
  EXPECT_EQ(bits(guards), 0);
  (void)judge(guards, answer(Arm::kCanary, milliseconds(900)));
  EXPECT_GT(bits(guards), 0);

  const double before = bits(guards);
  for (int i = 0; i < 5; ++i) (void)judge(guards, answer(Arm::kCanary, milliseconds(900), /*endpoint=*/7));
  EXPECT_EQ(bits(guards), before) << "a replica that came later is as cold";
  for (int i = 0; i < 5; ++i) guards.cold.answered(9);
  (void)judge(guards, answer(Arm::kCanary, milliseconds(900), /*endpoint=*/9));
  EXPECT_GT(bits(guards), before);
}

// A replica that gave two answers and was then replaced is gone: it must not keep fast answers from counting for the rest of the rollout.
TEST(LatencyGuards, AColdEndpointThatIsGoneIsForgotten) {
  Guard guard = exact_guard();
  guard.latency_skip = 5;
  Judged guards(guard);
  for (int i = 0; i < 6; ++i) (void)judge(guards, answer(Arm::kCanary, milliseconds(1)));
  for (int i = 0; i < 2; ++i) (void)judge(guards, answer(Arm::kCanary, milliseconds(1), /*endpoint=*/7));
  const double before = bits(guards);
  for (int i = 0; i < 20; ++i) (void)judge(guards, answer(Arm::kStable, milliseconds(1)));
  EXPECT_LE(bits(guards), before) << "one-sided: endpoint 7 is cold";
  for (int i = 0; i < 1001; ++i) guards.cold.answered(1);
  for (int i = 0; i < 20; ++i) (void)judge(guards, answer(Arm::kStable, milliseconds(1)));
  EXPECT_GT(bits(guards), before);
}

// While the canary's answers are skipped, those of stable must not count against it.
TEST(LatencyGuards, FastAnswersOfStableAreNoEvidenceWhileTheCanaryIsCold) {
  Guard guard = exact_guard();
  guard.latency_skip = 5;
  Judged guards(guard);
  for (int i = 0; i < 2'000; ++i) (void)judge(guards, answer(Arm::kStable, milliseconds(1)));
  EXPECT_LE(bits(guards), 0);
}

// A canary that answers 429 to half of its requests has half as many fast answers, and is not slow.
TEST(LatencyGuards, ARequestOfTheCanaryWithoutATimeCountsAsFast) {
  Judged guards(exact_guard());
  Random random(3);
  for (int i = 0; i < 50'000; ++i) {
    const milliseconds latency(1 + static_cast<int64_t>(random.below(100)));
    Observation observation = answer(random.chance(0.05) ? Arm::kCanary : Arm::kStable, latency);
    if (observation.arm == Arm::kCanary && random.chance(0.5)) {
      observation.outcome = Outcome::kNeutral;
      guards.not_good(observation, guards.cold.all_warm(), milliseconds(1000));
    } else {
      ASSERT_FALSE(judge(guards, observation));
    }
  }
}

TEST(LatencyGuards, TheReasonNamesTheLimitThatTheArmsDifferMostAt) {
  Judged guards(exact_guard());
  std::optional<Verdict> verdict;
  for (int i = 0; i < 100 && !verdict; ++i) {
    for (int j = 0; j < 19; ++j) (void)judge(guards, answer(Arm::kStable, milliseconds(1 + (i * 19 + j) % 100)));
    verdict = judge(guards, answer(Arm::kCanary, milliseconds(900)));
  }
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->cause, "lat_rank");
  EXPECT_THAT(verdict->reason,
              testing::MatchesRegex("lat_rank: ([0-9]+) of the canary's last ([0-9]+) answers were slower than stable's 2 x p99, "
                                    "0 of stable's last [0-9]+, at 5 % of traffic; e-value 2.* over 2.12.3"));
}

}  // namespace
}  // namespace serin::rollout
