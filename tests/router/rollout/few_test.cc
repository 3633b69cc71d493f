// A canary that is right in shape and wrong for a few inputs: the shadow pairs until it is out, and the healthy canaries that stay.
// SERIN_LONG=1 for 10,000 healthy rollouts of each kind.

#include "router/rollout/few_guard.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "router/rollout/alpha_budget.h"
#include "router/rollout/replay.h"
#include "simulation.h"

namespace serin::rollout {
namespace {

bool long_run() { return std::getenv("SERIN_LONG") != nullptr; }

/// What pairs of the two versions are like.
struct Kin {
  const char* name;
  double far = 0;      ///< another label by a wide margin
  double same = 1;     ///< of the others that can tell: numerically the same
  double telling = 1;  ///< of all: those that can tell
  double close = 0;    ///< another label by a hair: a mismatch, but not far
  uint64_t until = 0;  ///< healthy so long
};

/// Pairs until a rollback; nothing: none in `most`.
Spec mirrored_at_5(const std::string& guard) {
  Spec spec = hold_at(5, guard);
  spec.guard.shadow_ppm = 100'000;  // asked for: all pairs count
  return spec;
}

struct Trial {
  Trial(const Kin& kin, uint64_t seed, uint64_t most, const std::string& guard = "")
      : rollout(Rollout::start(mirrored_at_5(guard), "s-1", 1, simulated_baseline(), Time())) {
    Random random(seed);
    for (pairs = 1; pairs <= most; ++pairs) {
      ShadowPair pair{.epoch = 1, .comparable = true};
      pair.far = pairs > kin.until && random.chance(kin.far);
      pair.mismatch = pair.far || random.chance(kin.close);
      if (random.chance(kin.telling)) pair.same = !pair.far && random.chance(kin.same);
      if (rollout.observe(pair, Time(std::chrono::milliseconds(pairs)))) break;
    }
    rolled_back = rollout.state().phase == Phase::kRolledBack;
  }
  Rollout rollout;
  uint64_t pairs = 0;
  bool rolled_back = false;
};

struct Row {
  Kin kin;
  uint64_t median, p99;  // at most
};

class FewRows : public testing::TestWithParam<Row> {};

TEST_P(FewRows, AreFoundWithinSoManyPairs) {
  const Row& row = GetParam();
  std::vector<uint64_t> delays;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Trial run(row.kin, seed * 7 + 1, row.kin.until + 20'000);
    ASSERT_TRUE(run.rolled_back);
    ASSERT_THAT(run.rollout.state().cause, testing::StartsWith("shadow")) << "of many, either";
    delays.push_back(run.pairs - row.kin.until);
  }
  std::ranges::sort(delays);
  const uint64_t median = delays[1000], p90 = delays[1800], p99 = delays[1980];
  std::printf("  %-44s median %4llu, p90 %4llu, p99 %4llu pairs\n", row.kin.name, static_cast<unsigned long long>(median),
              static_cast<unsigned long long>(p90), static_cast<unsigned long long>(p99));
  EXPECT_LE(median, row.median);
  EXPECT_LE(p99, row.p99);
}

INSTANTIATE_TEST_SUITE_P(
    Table, FewRows,
    testing::Values(Row{{.name = "wrong for 2 %", .far = 0.02}, 240, 700}, Row{{.name = "wrong for 20 %", .far = 0.2}, 20, 60},
                    Row{{.name = "wrong for 5 %", .far = 0.05}, 110, 300}, Row{{.name = "wrong for 1 %", .far = 0.01}, 600, 1800},
                    Row{{.name = "wrong for 50 %", .far = 0.5}, 25, 100},
                    Row{{.name = "wrong for 2 %, a fifth of the pairs can tell", .far = 0.02, .telling = 0.2}, 300, 900},
                    Row{{.name = "wrong for 2 %, rounding in half of the rest", .far = 0.02, .same = 0.5}, 300, 900},
                    Row{{.name = "wrong for 2 % after 10,000 good pairs", .far = 0.02, .until = 10'000}, 600, 1500}));

class HealthyKin : public testing::TestWithParam<Kin> {};

TEST_P(HealthyKin, StaysIn) {
  const uint64_t runs = long_run() ? 10'000 : 400;
  uint64_t rolled_back = 0;
  for (uint64_t seed = 0; seed < runs; ++seed) rolled_back += Trial(GetParam(), seed * 11 + 5, 3'000).rolled_back;
  std::printf("  %-60s %llu of %llu rolled back in 3,000 pairs\n", GetParam().name, static_cast<unsigned long long>(rolled_back),
              static_cast<unsigned long long>(runs));
  EXPECT_LE(static_cast<double>(rolled_back), std::max(1.0, 0.0015 * static_cast<double>(runs)));
}

INSTANTIATE_TEST_SUITE_P(
    Of, HealthyKin,
    testing::Values(Kin{.name = "the same build"},
                    Kin{.name = "the same weights, 3 % near ties fall the other way", .same = 0.4, .close = 0.03},
                    Kin{.name = "the same weights, 0.05 % far off", .far = 0.0005},
                    Kin{.name = "new weights, 2 % other labels", .far = 0.02, .same = 0.01},
                    Kin{.name = "new weights, 8 % other labels", .far = 0.08, .same = 0.01},
                    Kin{.name = "new weights, 5 %, saturated: a tenth can tell", .far = 0.05, .same = 0.05, .telling = 0.1},
                    Kin{.name = "new weights, 5 %, a fifth the same by chance", .far = 0.05, .same = 0.2 / 0.95},
                    Kin{.name = "votes of a few trees: no pair can tell", .far = 0.05, .telling = 0}));

TEST(Few, ReplaysToTheSameDecision) {
  for (const double far : {0.02, 0.2})
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const Trial run({.name = "", .far = far, .same = 0.9, .telling = 0.7}, seed, 20'000);
      ASSERT_TRUE(run.rolled_back);
      const VerdictRecord record = run.rollout.explain();
      const Replay again = replay(record);
      ASSERT_TRUE(again.rolled_back);
      EXPECT_EQ(again.decided_by, record.events.size() - 1);
      for (size_t i = 0; i < record.events.size(); ++i) ASSERT_EQ(again.bits[i], record.events[i].bits) << "event " << i;
    }
}

TEST(Few, SaysWhatItSaw) {
  const Trial run({.name = "", .far = 0.02}, 3, 20'000);
  EXPECT_THAT(run.rollout.state().reason,
              testing::ContainsRegex("shadow_few: [0-9]+ of [0-9]+ answers have an entirely different label from stable's, while [0-9]+ of "
                                     "[0-9]+ are numerically the same; e-value .*maxDisagreement"));
  EXPECT_EQ(run.rollout.report().leading_guard, FewGuard::kName);
}

TEST(Few, IsTheUsersToSwitchOff) {
  EXPECT_FALSE(Trial({.name = "", .far = 0.02}, 3, 5'000, "guard: {output: {maxDisagreement: 10%}}").rolled_back);
  EXPECT_FALSE(Trial({.name = "", .far = 0.02}, 3, 5'000, "guard: {output: {compare: off}}").rolled_back);
  const Trial dry({.name = "", .far = 0.02}, 3, 5'000, "dryRun: [shadow]");
  EXPECT_FALSE(dry.rolled_back);
  ASSERT_EQ(dry.rollout.report().dry_run.size(), 1u);
  EXPECT_EQ(dry.rollout.report().dry_run[0].guard, FewGuard::kName);
}

/// Why both questions are asked: either alone rolls back canaries that are well.
TEST(Few, OneQuestionAloneWouldRollBackTheHealthy) {
  FewGuard new_weights(trip_value(0.001, kShadowShare / 2)), same_build(new_weights);
  bool tripped = false;
  for (int i = 0; i < 5'000; ++i) {
    tripped = tripped || new_weights.observe({.far = i % 20 == 0, .same = false}, {});
    tripped = tripped || same_build.observe({.far = false, .same = true}, {});
  }
  EXPECT_FALSE(tripped);
  EXPECT_LT(new_weights.evidence().bits, 1);
  EXPECT_LT(same_build.evidence().bits, 1);
}

}  // namespace
}  // namespace serin::rollout
