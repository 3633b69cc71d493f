// The life of a rollout, from the outside: answers, ticks and commands go in, weights and phases come out.

#include <gmock/gmock.h>

#include "router/rollout/rollout.h"

namespace serin::rollout {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

Spec spec_with(const std::string& lines) {
  const std::string text = "service: digits\nstable: {version: 1}\ncanary: {version: 2}\n" + lines;
  return parse_spec(config::Node::parse(text, "spec").value()).value();
}

Baseline fast_baseline() {
  Baseline baseline;
  for (int i = 0; i < 10'000; ++i) baseline.record(milliseconds(10));
  return baseline;
}

/// A rollout with a clock and a service whose answers one can name.
struct Rollouts {
  explicit Rollouts(const std::string& lines, Baseline baseline = fast_baseline())
      : rollout(Rollout::start(spec_with(lines), "digits-1", 7, baseline, now)) {}

  bool answer(Arm arm, Outcome outcome = Outcome::kOk, milliseconds latency = milliseconds(8)) {
    return rollout.observe(Observation{.arm = arm,
                                       .epoch = rollout.state().epoch,
                                       .weight_ppm = rollout.state().weight_ppm,
                                       .outcome = outcome,
                                       .latency = latency,
                                       .batch = BatchId{++sequence, 0, 1},
                                       .endpoint = arm == Arm::kCanary ? 1u : 0u},
                           now);
  }
  bool shadow(Outcome canary = Outcome::kOk, bool mismatch = false) {
    return rollout.observe(
        ShadowPair{.epoch = rollout.state().epoch, .canary = canary, .comparable = canary == Outcome::kOk, .mismatch = mismatch}, now);
  }
  bool tick_after(std::chrono::nanoseconds time) {
    now += time;
    return rollout.tick(now);
  }
  /// Good answers until the step changes.
  void pass_step() {
    const int step = rollout.state().step;
    const Phase phase = rollout.state().phase;
    for (int i = 0; i < 100'000 && rollout.state().step == step && rollout.state().phase == phase; ++i) {
      answer(Arm::kStable);
      rollout.state().weight_ppm == 0 ? shadow() : answer(Arm::kCanary);
    }
  }
  Phase phase() const { return rollout.state().phase; }
  uint32_t weight() const { return rollout.state().weight_ppm; }

  Time now{};
  uint64_t sequence = 0;
  Rollout rollout;
};

TEST(RolloutSteps, AHealthyCanaryIsPromotedStepByStep) {
  Rollouts bench("");
  EXPECT_EQ(bench.rollout.state().shadow_ppm, 100'000u);
  EXPECT_EQ(bench.weight(), 0u);
  for (uint32_t percent : {1, 5, 20, 50, 100}) {
    bench.pass_step();
    EXPECT_EQ(bench.weight(), percent * 10'000);
    EXPECT_EQ(bench.phase(), Phase::kProgressing);
  }
  bench.pass_step();
  EXPECT_EQ(bench.phase(), Phase::kPromoting);
  EXPECT_TRUE(bench.tick_after(seconds(1)));
  EXPECT_EQ(bench.phase(), Phase::kSucceeded);
  EXPECT_EQ(bench.weight(), kAll);
  EXPECT_EQ(bench.rollout.state().cause, "promoted");
  EXPECT_FALSE(bench.answer(Arm::kCanary, Outcome::kError)) << "over is over";
}

TEST(RolloutSteps, BakesAgainstAControlBeforeItSucceeds) {
  Rollouts bench("steps: [5, {promote: {bake: 30m, control: 5}}]");
  bench.pass_step();
  EXPECT_EQ(bench.phase(), Phase::kPromoting);
  EXPECT_EQ(bench.weight(), 950'000u);
  EXPECT_TRUE(bench.tick_after(seconds(1)));
  EXPECT_EQ(bench.phase(), Phase::kBaking);
  EXPECT_FALSE(bench.tick_after(minutes(31))) << "nobody has asked the canary anything";
  bench.answer(Arm::kCanary);
  EXPECT_TRUE(bench.tick_after(seconds(1)));
  EXPECT_EQ(bench.phase(), Phase::kSucceeded);
  EXPECT_EQ(bench.weight(), kAll);
}

TEST(RolloutSteps, RollsBackWhileBaking) {
  Rollouts bench("steps: [5, {promote: {bake: 30m, control: 50}}]");
  bench.pass_step();
  bench.tick_after(seconds(1));
  for (int i = 0; i < 40 && bench.phase() == Phase::kBaking; ++i) {
    bench.answer(Arm::kCanary, Outcome::kError);
    bench.answer(Arm::kStable);
  }
  EXPECT_EQ(bench.phase(), Phase::kRolledBack);
  EXPECT_EQ(bench.weight(), 0u);
}

TEST(RolloutSteps, WaitsAtAManualGate) {
  Rollouts bench("steps: [5, {pause: {}}, 100]");
  bench.pass_step();
  EXPECT_EQ(bench.phase(), Phase::kPaused);
  EXPECT_EQ(bench.weight(), 50'000u) << "a pause keeps the weight";
  EXPECT_FALSE(bench.tick_after(hours(100)));
  ASSERT_TRUE(bench.rollout.resume(bench.now));
  EXPECT_EQ(bench.weight(), kAll);
  EXPECT_EQ(bench.phase(), Phase::kProgressing);
}

TEST(RolloutSteps, TimedStepsWaitForTimeAndForTraffic) {
  Rollouts bench("steps: [{setWeight: 5, until: {duration: 10m}}, {pause: {duration: 1m}}, 100]");
  EXPECT_FALSE(bench.tick_after(minutes(11))) << "no answer of the canary yet";
  bench.answer(Arm::kCanary);
  EXPECT_EQ(bench.rollout.state().step, 1);
  EXPECT_FALSE(bench.tick_after(seconds(59)));
  EXPECT_TRUE(bench.tick_after(seconds(1)));
  EXPECT_EQ(bench.weight(), kAll);
}

// Bad input R8 (tests/README.md)
TEST(RolloutSteps, R8NoTrafficHoldsAndThenSaysSo) {
  Rollouts bench("steps: [5, 100]\ncertify: {maxStepDuration: 1h}");
  EXPECT_FALSE(bench.tick_after(minutes(59)));
  EXPECT_TRUE(bench.tick_after(minutes(1)));
  EXPECT_EQ(bench.phase(), Phase::kInconclusive);
  EXPECT_EQ(bench.weight(), 50'000u);
  EXPECT_THAT(bench.rollout.state().reason, HasSubstr("insufficient data"));
  ASSERT_TRUE(bench.rollout.resume(bench.now));
  EXPECT_EQ(bench.phase(), Phase::kProgressing);
  EXPECT_FALSE(bench.tick_after(minutes(59)));
}

// Bad input R8 (tests/README.md)
TEST(RolloutVerdict, R8OneErrorAloneNeverTrips) {
  for (const std::string steps : {"steps: [0.0001, 100]", "steps: [1, 100]", "steps: [50, 100]"})
    for (Outcome outcome : {Outcome::kError, Outcome::kRejected, Outcome::kDeadline}) {
      Rollouts bench(steps + "\nguard: {errors: {max: 1%}}");
      EXPECT_FALSE(bench.answer(Arm::kCanary, outcome)) << steps;
      EXPECT_EQ(bench.phase(), Phase::kProgressing);
    }
}

// Bad input R7 (tests/README.md): the only clock is the argument, and one that goes backwards judges nobody.
TEST(RolloutSteps, R7AClockThatStepsBackChangesNothing) {
  Rollouts bench("steps: [{setWeight: 5, until: {duration: 10m}}, 100]");
  bench.now += hours(2);
  bench.answer(Arm::kCanary);
  EXPECT_EQ(bench.rollout.state().step, 1);
  const State before = bench.rollout.state();
  EXPECT_FALSE(bench.tick_after(-hours(1)));
  bench.answer(Arm::kCanary);
  EXPECT_EQ(bench.rollout.state().phase, before.phase);
  EXPECT_EQ(bench.rollout.state().step, before.step);
}

TEST(RolloutVerdict, SaysWhatDecided) {
  Rollouts bench("steps: [5, 100]");
  int errors = 0;
  while (bench.phase() == Phase::kProgressing && errors < 100) {
    for (int i = 0; i < 19; ++i) bench.answer(Arm::kStable);
    bench.answer(Arm::kCanary, Outcome::kError);
    ++errors;
  }
  EXPECT_LE(errors, 5);
  EXPECT_EQ(bench.rollout.state().cause, "err");
  EXPECT_THAT(bench.rollout.state().reason, AllOf(HasSubstr("of the last"), HasSubstr("at 5 % of traffic"), HasSubstr("over 2^11.7")));
  const Report report = bench.rollout.report();
  EXPECT_EQ(report.leading_guard, "err");
  ASSERT_EQ(report.events.size(), static_cast<size_t>(errors));
  EXPECT_EQ(report.events.back().arm, Arm::kCanary);
  EXPECT_GE(report.events.back().bits, 11.7);
  EXPECT_EQ(report.canary_answers, static_cast<uint64_t>(errors));
}

TEST(RolloutVerdict, ACanaryThatRefusesEverythingIsCaughtWhileItIsShadowed) {
  Rollouts bench("");
  int pairs = 0;
  for (; pairs < 100 && bench.phase() == Phase::kProgressing; ++pairs) bench.shadow(Outcome::kRejected);
  EXPECT_EQ(bench.phase(), Phase::kRolledBack);
  EXPECT_EQ(bench.rollout.state().cause, "rej");
  EXPECT_THAT(bench.rollout.state().reason, HasSubstr("in shadow pairs"));
  EXPECT_LE(pairs, 25);
}

TEST(RolloutVerdict, ACanaryThatIsNotUpYetLosesNothingWhileItIsShadowed) {
  Rollouts bench("");
  for (int i = 0; i < 1000; ++i)
    bench.rollout.observe(ShadowPair{.epoch = 7, .canary = Outcome::kError, .canary_ending = Ending::kRefused}, bench.now);
  EXPECT_EQ(bench.phase(), Phase::kProgressing) << "a thousand refused connections are one episode";
  bench.pass_step();
  EXPECT_EQ(bench.weight(), 10'000u);
}

TEST(RolloutVerdict, ACanaryWhoseAnswersAreCutOffIsCaughtWhileItIsShadowed) {
  Rollouts bench("");
  int pairs = 0;
  for (; pairs < 100 && bench.phase() == Phase::kProgressing; ++pairs) {
    bench.now += milliseconds(50);
    bench.rollout.observe(ShadowPair{.epoch = 7, .canary = Outcome::kError, .canary_ending = Ending::kBroken}, bench.now);
  }
  EXPECT_EQ(bench.rollout.state().cause, "err");
  EXPECT_LE(pairs, 25);
}

TEST(RolloutVerdict, ACanaryThatDiesWhileItIsShadowedIsOneEpisode) {
  Rollouts bench("");
  for (int death = 0; death < 5; ++death) {
    for (int i = 0; i < 10; ++i)
      bench.rollout.observe(ShadowPair{.epoch = 7, .canary = Outcome::kError, .canary_ending = Ending::kBroken}, bench.now);
    for (int i = 0; i < 100; ++i) {
      bench.now += milliseconds(20);
      bench.rollout.observe(ShadowPair{.epoch = 7, .canary = Outcome::kError, .canary_ending = Ending::kRefused}, bench.now);
    }
    bench.shadow();
  }
  const auto evidence = bench.rollout.report().evidence;
  EXPECT_EQ(std::ranges::find(evidence, "err", &Evidence::guard)->canary_events, 5u);
}

/// A canary's answer that breaks 5 ms after its draw.
bool cut_off(Rollouts& bench) {
  return bench.rollout.observe(Observation{.arm = Arm::kCanary,
                                           .epoch = bench.rollout.state().epoch,
                                           .weight_ppm = bench.weight(),
                                           .outcome = Outcome::kError,
                                           .latency = milliseconds(5),
                                           .endpoint = 1,
                                           .ending = Ending::kBroken},
                               bench.now);
}

TEST(RolloutVerdict, ACanaryWhoseAnswersAreCutOffIsOutBeforeItIsSilent) {
  Rollouts bench("steps: [5]");
  int answers = 0;
  for (; answers < 100 && bench.phase() == Phase::kProgressing; ++answers) {
    bench.now += milliseconds(100);
    cut_off(bench);
  }
  EXPECT_EQ(answers, 5) << "four as with 500, and one to show that the process lives";
  EXPECT_EQ(bench.rollout.state().cause, "err");
  EXPECT_THAT(bench.rollout.state().reason, HasSubstr("at 5 % of traffic"));
}

TEST(RolloutVerdict, AnAnswerCutOffCountsThoughTheWeightChangesMeanwhile) {
  Rollouts bench("steps: [5]");
  cut_off(bench);
  bench.now += milliseconds(100);
  ASSERT_TRUE(bench.rollout.set_weight(200'000, bench.now));
  bench.answer(Arm::kCanary);
  const auto evidence = bench.rollout.report().evidence;
  EXPECT_EQ(std::ranges::find(evidence, "err", &Evidence::guard)->canary_events, 1u);
}

TEST(RolloutVerdict, AFailedBatchOfShadowAnswersIsOnePieceOfNews) {
  Rollouts bench("");
  for (uint64_t batch = 0; batch < 3; ++batch)
    for (uint32_t i = 0; i < 32; ++i)
      bench.rollout.observe(ShadowPair{.epoch = 7,
                                       .canary = Outcome::kError,
                                       .stable_batch = BatchId{1000 + batch * 32 + i, 0, 1},
                                       .canary_batch = BatchId{batch, i, 32}},
                            bench.now);
  EXPECT_EQ(bench.phase(), Phase::kProgressing);
  EXPECT_EQ(bench.rollout.report().evidence[0].canary_events, 3u);
}

TEST(RolloutVerdict, ACanaryThatAnswersOtherwiseIsCaughtWhileItIsShadowed) {
  Rollouts bench("");
  int pairs = 0;
  for (; pairs < 100 && bench.phase() == Phase::kProgressing; ++pairs) bench.shadow(Outcome::kOk, /*mismatch=*/pairs % 10 != 0);
  EXPECT_EQ(bench.rollout.state().cause, "shadow");
  EXPECT_LE(pairs, 15);
}

TEST(RolloutVerdict, ASlowCanaryIsCaught) {
  Rollouts bench("steps: [20, 100]");
  for (int i = 0; i < 200 && bench.phase() == Phase::kProgressing; ++i) {
    for (int j = 0; j < 4; ++j) bench.answer(Arm::kStable);
    bench.answer(Arm::kCanary, Outcome::kOk, milliseconds(60));
  }
  EXPECT_EQ(bench.phase(), Phase::kRolledBack);
  EXPECT_THAT(bench.rollout.state().cause, HasSubstr("lat_"));
}

TEST(RolloutVerdict, LatencyIsJudgedAfterAFewAnswersOfStableAndCertifiedAfterMany) {
  Rollouts bench("steps: [20, 100]\nguard: {latency: {baseline: 500}}", Baseline{});
  EXPECT_THAT(bench.rollout.report().note, HasSubstr("not judged yet: 16 more of stable's answers"));
  for (int i = 0; i < 16; ++i) bench.answer(Arm::kStable);
  EXPECT_THAT(bench.rollout.report().note, HasSubstr("not certified yet: 484 more of stable's answers"));
  for (int i = 0; i < 483; ++i) {
    bench.answer(Arm::kStable);
    bench.answer(Arm::kCanary);
  }
  EXPECT_EQ(bench.rollout.state().step, 0);
  for (int i = 0; i < 2'000 && bench.rollout.state().step == 0; ++i) {
    bench.answer(Arm::kStable);
    bench.answer(Arm::kCanary);
  }
  EXPECT_EQ(bench.rollout.state().step, 1) << "certified now";
  EXPECT_EQ(bench.phase(), Phase::kProgressing);
}

TEST(RolloutVerdict, ASlowCanaryIsCaughtWhereStableIsKnownFromTheRolloutOnly) {
  Rollouts bench("steps: [20, 100]", Baseline{});
  int canary = 0;
  for (; canary < 100 && bench.phase() == Phase::kProgressing; ++canary) {
    for (int j = 0; j < 4; ++j) bench.answer(Arm::kStable);
    bench.now += milliseconds(100);
    bench.answer(Arm::kCanary, Outcome::kOk, seconds(1));
  }
  EXPECT_EQ(bench.phase(), Phase::kRolledBack);
  EXPECT_LE(canary, 30) << "the first second's requests were drawn before anything was known of stable";
}

/// A second of traffic to a canary whose endpoint refuses connections.
void second_of_silence(Rollouts& bench) {
  for (int i = 0; i < 20; ++i) bench.answer(Arm::kStable);
  if (bench.weight() > 0)
    bench.rollout.observe(Observation{.arm = Arm::kCanary,
                                      .epoch = bench.rollout.state().epoch,
                                      .weight_ppm = bench.weight(),
                                      .outcome = Outcome::kError,
                                      .endpoint = 1,
                                      .ending = Ending::kRefused},
                          bench.now);
  bench.tick_after(seconds(1));
}

TEST(RolloutVerdict, ACanaryThatNeverAnswersIsHeldAndThenGivenUp) {
  Rollouts bench("steps: [5, 100]\nguard: {latency: {deadline: 1s}}");
  int waited = 0, held = 0;
  for (; bench.phase() == Phase::kProgressing && waited < 100; ++waited) {
    second_of_silence(bench);
    held += bench.weight() == 0;
  }
  EXPECT_EQ(bench.rollout.state().cause, "hang");
  EXPECT_THAT(bench.rollout.state().reason, HasSubstr("no answer for 2s"));
  EXPECT_LE(waited, 3 * 4 + 2 * 10);
  EXPECT_GE(held, 18) << "most of the time it got no traffic";
}

TEST(RolloutVerdict, ACanaryThatRestartsIsTriedAgain) {
  Rollouts bench("steps: [5, 100]\nguard: {latency: {deadline: 1s}}");
  for (int i = 0; i < 4; ++i) second_of_silence(bench);
  EXPECT_EQ(bench.weight(), 0u);
  EXPECT_THAT(bench.rollout.state().reason, HasSubstr("held at 0"));
  for (int i = 0; i < 11; ++i) bench.tick_after(seconds(1));
  EXPECT_EQ(bench.weight(), 50'000u);
  bench.pass_step();
  EXPECT_EQ(bench.weight(), kAll);
}

TEST(RolloutVerdict, ASilenceOfBothArmsHoldsNobody) {
  Rollouts bench("steps: [5, 100]\nguard: {latency: {deadline: 1s}}");
  for (int i = 0; i < 60; ++i) {
    for (Arm arm : {Arm::kStable, Arm::kCanary})
      bench.rollout.observe(
          Observation{.arm = arm, .epoch = 7, .weight_ppm = 50'000, .outcome = Outcome::kDeadline, .endpoint = arm == Arm::kCanary},
          bench.now);
    bench.tick_after(seconds(1));
  }
  EXPECT_EQ(bench.phase(), Phase::kProgressing);
  EXPECT_EQ(bench.weight(), 50'000u);
}

TEST(RolloutVerdict, AnswersOfAnotherEpochSayNothing) {
  Rollouts bench("steps: [5, 100]");
  for (int i = 0; i < 100; ++i)
    bench.rollout.observe(Observation{.arm = Arm::kCanary, .epoch = 6, .weight_ppm = 50'000, .outcome = Outcome::kError}, bench.now);
  EXPECT_EQ(bench.phase(), Phase::kProgressing);
  EXPECT_EQ(bench.rollout.report().canary_answers, 0u);
}

// Bad input R3 (tests/README.md)
TEST(RolloutCommands, R3NameThePhaseThatForbidsThem) {
  Rollouts bench("steps: [5, 100]");
  const Status resumed = bench.rollout.resume(bench.now);
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(resumed.error().message, AllOf(HasSubstr("digits-1"), HasSubstr("Progressing")));

  ASSERT_TRUE(bench.rollout.abort("wrong file", bench.now));
  EXPECT_EQ(bench.weight(), 0u);
  EXPECT_EQ(bench.rollout.state().cause, "abort");
  EXPECT_EQ(bench.rollout.state().reason, "wrong file");
  EXPECT_TRUE(bench.rollout.abort("again", bench.now)) << "idempotent";
  EXPECT_EQ(bench.rollout.state().reason, "wrong file");
  for (const Status& status : {bench.rollout.promote(bench.now), bench.rollout.pause(bench.now), bench.rollout.resume(bench.now),
                               bench.rollout.set_weight(1, bench.now)}) {
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("RolledBack"));
  }
}

TEST(RolloutCommands, APauseHoldsTheStepsButNotTheGuards) {
  Rollouts bench("steps: [5, 100]");
  ASSERT_TRUE(bench.rollout.pause(bench.now));
  for (int i = 0; i < 2000; ++i) bench.answer(Arm::kCanary);
  EXPECT_EQ(bench.rollout.state().step, 0);
  EXPECT_FALSE(bench.tick_after(hours(2)));
  ASSERT_TRUE(bench.rollout.resume(bench.now));
  EXPECT_TRUE(bench.rollout.tick(bench.now)) << "certified while it was paused";
  EXPECT_EQ(bench.weight(), kAll);

  Rollouts bad("steps: [5, 100]");
  ASSERT_TRUE(bad.rollout.pause(bad.now));
  for (int i = 0; i < 10; ++i) bad.answer(Arm::kCanary, Outcome::kError);
  EXPECT_EQ(bad.phase(), Phase::kRolledBack);
}

TEST(RolloutCommands, PromotionByHandDoesNotBake) {
  Rollouts bench("steps: [5, {promote: {bake: 30m}}]");
  ASSERT_TRUE(bench.rollout.promote(bench.now));
  EXPECT_EQ(bench.weight(), kAll);
  EXPECT_TRUE(bench.tick_after(milliseconds(1)));
  EXPECT_EQ(bench.phase(), Phase::kSucceeded);
}

TEST(RolloutCommands, AWeightByHandPausesTheStepsAndIsTheirNewStart) {
  Rollouts bench("steps: [1, 5, 50, 100]");
  ASSERT_TRUE(bench.rollout.set_weight(300'000, bench.now));
  EXPECT_EQ(bench.phase(), Phase::kPaused);
  EXPECT_EQ(bench.weight(), 300'000u);
  EXPECT_EQ(bench.rollout.state().epoch, 8u) << "what was drawn before is no evidence at the new weight";
  ASSERT_TRUE(bench.rollout.resume(bench.now));
  EXPECT_EQ(bench.weight(), 300'000u);
  bench.pass_step();
  EXPECT_EQ(bench.weight(), 500'000u);
}

/// A rollout whose moves wait for a yes from outside.
Rollout gated(const std::string& lines, Gates gates) {
  Spec spec = spec_with(lines);
  spec.gates = gates;
  return Rollout::start(std::move(spec), "digits-1", 7, fast_baseline(), {});
}

TEST(RolloutGates, NothingBeginsBeforeTheYes) {
  Rollouts bench("steps: [5, 100]");
  bench.rollout = gated("steps: [5, 100]", {.rollout = true});
  EXPECT_EQ(bench.phase(), Phase::kPaused);
  EXPECT_EQ(bench.weight(), 0u);
  EXPECT_EQ(bench.rollout.awaits(), "confirm-rollout");
  EXPECT_FALSE(bench.tick_after(hours(100))) << "it waits for as long as it takes";
  EXPECT_FALSE(bench.rollout.confirm("confirm-promotion", bench.now)) << "another gate's yes";
  EXPECT_TRUE(bench.rollout.confirm("confirm-rollout", bench.now));
  EXPECT_EQ(bench.weight(), 50'000u);
  EXPECT_EQ(bench.rollout.awaits(), "");
  EXPECT_FALSE(bench.rollout.confirm("confirm-rollout", bench.now)) << "once";
}

TEST(RolloutGates, APromotionWaitsAtTheWeightItHasWhileTheGuardsGoOn) {
  Rollouts bench("steps: [50, 100]");
  bench.rollout = gated("steps: [50, 100]", {.promotion = true});
  bench.pass_step();
  EXPECT_EQ(bench.rollout.awaits(), "confirm-promotion");
  EXPECT_THAT(bench.rollout.state().reason, HasSubstr("step 1 of 2 is done: waits for confirm-promotion"));
  EXPECT_EQ(bench.weight(), 500'000u);
  for (int i = 0; i < 1000 && bench.phase() == Phase::kPaused; ++i) {
    bench.answer(Arm::kStable);
    bench.answer(Arm::kCanary, Outcome::kError);
  }
  EXPECT_EQ(bench.phase(), Phase::kRolledBack);
  EXPECT_EQ(bench.rollout.state().cause, "err");
}

TEST(RolloutGates, EveryIncreaseHasItsOwnYesAndAPersonsCounts) {
  Rollouts bench("steps: [5, 20, 50]");
  bench.rollout = gated("steps: [5, 20, 50]", {.increase = true});
  bench.pass_step();
  EXPECT_EQ(bench.rollout.awaits(), "confirm-traffic-increase");
  EXPECT_TRUE(bench.rollout.resume(bench.now));
  EXPECT_EQ(bench.weight(), 200'000u);
  bench.pass_step();
  EXPECT_EQ(bench.rollout.awaits(), "confirm-traffic-increase");
  EXPECT_TRUE(bench.rollout.confirm("confirm-traffic-increase", bench.now));
  EXPECT_EQ(bench.weight(), 500'000u);
}

TEST(RolloutGates, AGateSurvivesARestartAndAnythingElseEndsIt) {
  Rollouts bench("steps: [50, 100]");
  bench.rollout = gated("steps: [50, 100]", {.promotion = true});
  bench.pass_step();
  Spec spec = spec_with("steps: [50, 100]");
  spec.gates.promotion = true;
  Rollout again = Rollout::resume(spec, bench.rollout.state(), fast_baseline(), bench.now);
  EXPECT_EQ(again.awaits(), "confirm-promotion");
  EXPECT_TRUE(again.confirm("confirm-promotion", bench.now));
  EXPECT_EQ(again.state().weight_ppm, kAll);

  EXPECT_TRUE(bench.rollout.set_weight(100'000, bench.now));
  EXPECT_EQ(bench.rollout.awaits(), "") << "a weight by hand is another matter";
}

TEST(RolloutRestart, KeepsStepAndWeightAndForgetsEvidence) {
  Rollouts bench("steps: [1, 5, 100]");
  bench.pass_step();
  for (int i = 0; i < 2; ++i) bench.answer(Arm::kCanary, Outcome::kError);
  const State saved = bench.rollout.state();
  Rollout again = Rollout::resume(bench.rollout.spec(), saved, fast_baseline(), bench.now);
  EXPECT_EQ(again.state().weight_ppm, 50'000u);
  EXPECT_EQ(again.state().step, 1);
  EXPECT_EQ(again.state().phase, Phase::kProgressing);
  for (const Evidence& evidence : again.report().evidence) EXPECT_EQ(evidence.bits, 0) << evidence.guard;
}

TEST(RolloutRestart, AWeightByHandSurvives) {
  Rollouts bench("steps: [1, 5, 100]");
  ASSERT_TRUE(bench.rollout.set_weight(20'000, bench.now));
  Rollout again = Rollout::resume(bench.rollout.spec(), bench.rollout.state(), fast_baseline(), bench.now);
  ASSERT_TRUE(again.resume(bench.now));
  EXPECT_EQ(again.state().weight_ppm, 20'000u);
}

TEST(RolloutRestart, AStepThatDoesNotExistWaitsForAPerson) {
  Rollouts bench("steps: [5, 100]");
  State state = bench.rollout.state();
  state.step = 9;
  EXPECT_EQ(Rollout::resume(bench.rollout.spec(), state, fast_baseline(), bench.now).state().phase, Phase::kPaused);
}

TEST(Phase, NamesReadBack) {
  for (int i = 0; i <= static_cast<int>(Phase::kRolledBack); ++i)
    EXPECT_EQ(find_phase(phase_name(static_cast<Phase>(i))), static_cast<Phase>(i));
  EXPECT_EQ(find_phase("Running"), std::nullopt);
}

}  // namespace
}  // namespace serin::rollout
