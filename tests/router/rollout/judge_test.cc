// What counts as evidence beyond single answers: keys, cohorts, looks at bodies, rehearsals, samples of the user's own queries.

#include <gmock/gmock.h>

#include "router/rollout/key_gate.h"
#include "router/rollout/output_guards.h"
#include "router/rollout/replay.h"
#include "router/rollout/rollout.h"
#include "simulation.h"

namespace serin::rollout {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

Observation of_key(Arm arm, std::optional<uint64_t> key) {
  return {.arm = arm, .weight_ppm = 50'000, .batch = BatchId{1, 0, 1}, .key = key};
}

TEST(KeyGate, AKeyCountsUntilItsFirstBadEvent) {
  KeyGate gate;
  EXPECT_TRUE(gate.pass(of_key(Arm::kCanary, 7), 0.05, false));
  EXPECT_TRUE(gate.pass(of_key(Arm::kCanary, 7), 0.05, true));
  EXPECT_FALSE(gate.pass(of_key(Arm::kCanary, 7), 0.05, true)) << "the same user again";
  EXPECT_FALSE(gate.pass(of_key(Arm::kCanary, 7), 0.05, false)) << "nor as a good answer";
  EXPECT_TRUE(gate.pass(of_key(Arm::kCanary, 8), 0.05, true));
}

TEST(KeyGate, WithoutKeysNothingChanges) {
  KeyGate gate;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(gate.pass(of_key(Arm::kCanary, {}), 0.05, true), Unit(0.05));
}

// Stable's users have all had their error; the canary is the better one and its users fail later: that is no evidence against it.
TEST(KeyGate, TheShareIsThatOfTheKeysStillAtRisk) {
  KeyGate gate;
  for (uint64_t user = 0; user < 2'000; ++user) (void)gate.pass(of_key(Arm::kStable, user), 0.05, /*bad=*/user % 10 != 0);
  for (uint64_t user = 0; user < 2'000; ++user) (void)gate.pass(of_key(Arm::kStable, user), 0.05, false);
  for (uint64_t user = 10'000; user < 10'100; ++user) (void)gate.pass(of_key(Arm::kCanary, user), 0.05, false);
  const auto unit = gate.pass(of_key(Arm::kCanary, 10'050), 0.05, true);
  ASSERT_TRUE(unit);
  EXPECT_GT(unit->share, 0.08) << "5 % of the requests, but more of those that could still fail for the first time";
}

TEST(KeyFilter, HoldsWhatWasAddedAndLittleElse) {
  KeyFilter filter;
  EXPECT_FALSE(filter.has(1));
  Random random(2);
  std::vector<uint64_t> keys;
  for (int i = 0; i < 200'000; ++i) keys.push_back(random.next());
  for (const uint64_t key : keys) filter.add(key);
  for (const uint64_t key : keys) ASSERT_TRUE(filter.has(key));
  int wrong = 0;
  for (int i = 0; i < 100'000; ++i) wrong += filter.has(random.next());
  EXPECT_LE(wrong, 300);
}

/// A rollout at 20 % whose answers one can name.
struct Bench {
  explicit Bench(const std::string& lines) : rollout(Rollout::start(spec_of(lines), "s-1", 1, simulated_baseline(), now)) {}
  Observation observation(Arm arm) {
    return {.arm = arm,
            .epoch = 1,
            .weight_ppm = 200'000,
            .latency = milliseconds(5),
            .batch = BatchId{++batches, 0, 1},
            .endpoint = arm == Arm::kCanary ? 1u : 0u};
  }
  bool answer(Arm arm, Outcome outcome) {
    Observation given = observation(arm);
    given.outcome = outcome;
    return rollout.observe(given, now);
  }
  bool look(Arm arm, uint64_t form, uint32_t label, bool finite = true) {
    Observation given = observation(arm);
    given.outcome = finite ? Outcome::kOk : Outcome::kError;
    given.output = Output{.weight_ppm = 200'000, .finite = finite, .form = form, .label = label, .score = 0.5};
    return rollout.observe(given, now);
  }
  const Evidence evidence(const std::string& guard) const {
    for (const Evidence& line : rollout.report().evidence)
      if (line.guard == guard) return line;
    return {};
  }

  Time now{};
  uint64_t batches = 0;
  Rollout rollout;
};

constexpr const char* kHold = "steps: [{setWeight: 20, until: {duration: 1000h}}]\n";

TEST(OutputGuards, AnotherFormIsFoundOnceStablesIsKnown) {
  Bench bench(kHold);
  for (int i = 0; i < 500; ++i) bench.look(Arm::kStable, 1, 0);
  int answers = 0;
  while (bench.rollout.state().phase == Phase::kProgressing && answers < 100) {
    bench.look(Arm::kCanary, 2, 0);
    ++answers;
  }
  EXPECT_EQ(bench.rollout.state().cause, "out_form");
  EXPECT_THAT(bench.rollout.state().reason, HasSubstr("outputs that stable never had in"));
  EXPECT_LE(answers, 15);
}

TEST(OutputGuards, FormsThatBothHaveSayNothing) {
  Bench bench(kHold);
  Random random(1);
  for (int i = 0; i < 20'000; ++i) bench.look(random.chance(0.2) ? Arm::kCanary : Arm::kStable, 1 + random.below(5000), 0);
  EXPECT_EQ(bench.rollout.state().phase, Phase::kProgressing);
}

// An arm that has stopped to answer is another guard's business: label 3 is not rare on a canary that is down.
TEST(OutputGuards, AnArmThatDoesNotAnswerSaysNothingAboutItsLabels) {
  for (const Arm answering : {Arm::kStable, Arm::kCanary}) {
    Bench bench(std::string(kHold) + "guard: {output: {drift: 2}}\ndryRun: [latency]");  // a canary without any answer is slow
    Random random(1);
    for (int i = 0; i < 2'000; ++i) bench.look(random.chance(0.2) ? Arm::kCanary : Arm::kStable, 1, static_cast<uint32_t>(random.below(3)));
    for (int i = 0; i < 5'000; ++i) bench.look(answering, 1, static_cast<uint32_t>(random.below(3)));
    EXPECT_EQ(bench.rollout.state().phase, Phase::kProgressing) << bench.rollout.state().reason;
  }
}

// Nobody asks for label 0 at night: both arms change their mix, and none is at fault.
TEST(OutputGuards, AMixThatChangesOnBothArmsSaysNothing) {
  Bench bench(std::string(kHold) + "guard: {output: {drift: 2}}");
  Random random(1);
  for (int i = 0; i < 20'000; ++i)
    bench.look(random.chance(0.2) ? Arm::kCanary : Arm::kStable, 1,
               static_cast<uint32_t>(i < 2'000 ? random.below(3) : 1 + random.below(2)));
  EXPECT_EQ(bench.rollout.state().phase, Phase::kProgressing) << bench.rollout.state().reason;
}

TEST(OutputGuards, AreOffWhereOutputsAreNotCompared) {
  Bench bench(std::string(kHold) + "guard: {output: {compare: \"off\"}}");
  for (int i = 0; i < 600; ++i) bench.look(Arm::kStable, 1, 0);
  for (int i = 0; i < 600; ++i) bench.look(Arm::kCanary, 2, 1);
  EXPECT_EQ(bench.rollout.state().phase, Phase::kProgressing);
}

// NaN is seen only where bodies are looked at: 5 % of stable's answers, say. Its share is that of the looks, or an outage would look like the canary's.
TEST(OutputGuards, NaNIsWeighedByTheShareOfTheLooks) {
  Bench bench(kHold);
  Observation nan = bench.observation(Arm::kCanary);
  nan.outcome = Outcome::kError;
  nan.output = Output{.weight_ppm = 900'000, .finite = false};
  bench.rollout.observe(nan, bench.now);
  ASSERT_EQ(bench.rollout.explain().guard, "err");
  EXPECT_DOUBLE_EQ(bench.rollout.explain().events.back().share, 0.9);
}

TEST(DryRun, SaysWhatItWouldHaveDone) {
  Bench bench(std::string(kHold) + "dryRun: [err]\nguard: {errors: {max: 1%}}");
  for (int i = 0; i < 60 && bench.rollout.state().phase == Phase::kProgressing; ++i) {
    bench.answer(Arm::kCanary, Outcome::kError);
    if (bench.rollout.report().dry_run.empty()) continue;
    EXPECT_EQ(bench.rollout.report().dry_run.front().guard, "err");
    EXPECT_THAT(bench.rollout.report().dry_run.front().reason, HasSubstr("e-value"));
    EXPECT_TRUE(bench.evidence("err").dry_run);
    EXPECT_FALSE(bench.evidence("threshold:errors").dry_run);
  }
  EXPECT_EQ(bench.rollout.state().cause, "threshold:errors") << "which does not only rehearse";
}

TEST(DryRun, OfEverythingRollsNothingBack) {
  Bench bench(std::string(kHold) + "dryRun: [err, rej, dl, latency, output, shadow, thresholds]\nguard: {errors: {max: 1%}}");
  for (int i = 0; i < 500; ++i)
    for (Outcome outcome : {Outcome::kError, Outcome::kRejected, Outcome::kDeadline}) bench.answer(Arm::kCanary, outcome);
  EXPECT_EQ(bench.rollout.state().phase, Phase::kProgressing);
  EXPECT_EQ(bench.rollout.report().dry_run.size(), 4u);
}

TEST(Cohort, IsCountedAgainstTheLimitsAndComparedWithNobody) {
  Bench bench(
      "steps: [{setWeight: 20, until: {duration: 1h}}, 100]\ncanary: {version: 2, cohort: {header: x, values: [b]}}\nguard: {errors: {max: "
      "1%}}");
  for (int i = 0; i < 200; ++i) {
    Observation beta = bench.observation(Arm::kCanary);
    beta.drawn = false;
    beta.outcome = Outcome::kError;
    bench.rollout.observe(beta, bench.now);
  }
  EXPECT_EQ(bench.rollout.state().phase, Phase::kProgressing) << "who was not drawn is no evidence";
  EXPECT_EQ(bench.evidence("err").canary_events, 0u);
  EXPECT_EQ(bench.evidence("threshold:errors").canary_events, 200u);
  EXPECT_THAT(bench.rollout.report().note, HasSubstr("threshold:errors is breached"));
  bench.now += std::chrono::hours(2);
  bench.rollout.tick(bench.now);
  EXPECT_EQ(bench.rollout.state().step, 0) << "but the steps hold";
}

constexpr const char* kQuery = "guard: {prometheus: {name: q, address: 'http://p:9090', query: up, max: 10, interval: 15s, breaches: 3}}\n";

// Bad input R9 (tests/README.md)
TEST(Samples, R9HoldWhereThereIsNoFreshNumber) {
  Bench bench(std::string("steps: [{setWeight: 20, until: {duration: 1s}}, 50]\n") + kQuery);
  bench.answer(Arm::kCanary, Outcome::kOk);
  const auto tick_after = [&](seconds time) {
    bench.now += time;
    return bench.rollout.tick(bench.now);
  };
  EXPECT_FALSE(tick_after(seconds(10)));
  EXPECT_THAT(bench.rollout.report().note, HasSubstr("has no answer yet"));
  bench.rollout.observe_sample(0, 5, bench.now);
  EXPECT_FALSE(tick_after(seconds(46))) << "three intervals old";
  EXPECT_THAT(bench.rollout.report().note, HasSubstr("no fresh answer for 46s"));
  bench.rollout.observe_sample(0, std::nullopt, bench.now);
  bench.rollout.observe_sample(0, std::nan(""), bench.now);
  EXPECT_FALSE(tick_after(seconds(1)));
  bench.rollout.observe_sample(0, 11, bench.now);
  EXPECT_FALSE(tick_after(seconds(1)));
  EXPECT_THAT(bench.rollout.report().note, HasSubstr("q is 11, above 10"));
  bench.rollout.observe_sample(0, 10, bench.now);
  EXPECT_TRUE(tick_after(seconds(1))) << "fresh and within the limit";
  EXPECT_EQ(bench.rollout.state().weight_ppm, 500'000u);
}

TEST(Samples, ManyAboveTheLimitInARowRollBack) {
  Bench bench(std::string(kHold) + kQuery);
  for (const double value : {11.0, 12.0, 9.0, 11.0, 12.0}) EXPECT_FALSE(bench.rollout.observe_sample(0, value, bench.now));
  bench.rollout.observe_sample(0, std::nullopt, bench.now);
  EXPECT_FALSE(bench.rollout.observe_sample(5, 100, bench.now)) << "no such query";
  EXPECT_TRUE(bench.rollout.observe_sample(0, 13, bench.now)) << "silence in between neither breaks the row nor adds to it";
  EXPECT_EQ(bench.rollout.state().cause, "prometheus:q");
  EXPECT_TRUE(replay(bench.rollout.explain()).rolled_back);
}

TEST(ShadowSummary, MeasuresWhatThePairsSay) {
  Bench bench("");
  for (int i = 0; i < 4; ++i)
    bench.rollout.observe(ShadowPair{.epoch = 1,
                                     .comparable = true,
                                     .mismatch = i == 3,
                                     .difference = Difference{.label = i >= 2, .absolute = 0.1 * i, .relative = 0.2 * i, .score = i - 1.0}},
                          bench.now);
  const ShadowSummary shadow = bench.rollout.report().shadow;
  EXPECT_EQ(shadow.compared, 4u);
  EXPECT_EQ(shadow.mismatches, 1u);
  EXPECT_EQ(shadow.labels, 2u);
  EXPECT_DOUBLE_EQ(shadow.largest_absolute, 0.3);
  EXPECT_DOUBLE_EQ(shadow.mean_score, 0.5);
}

}  // namespace
}  // namespace serin::rollout
