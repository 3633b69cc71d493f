// Every way a router can be killed, as what it leaves in the database and on the weights page, and what the next one goes on with.

#include "router/control/restore.h"

#include <gmock/gmock.h>

#include "router/config/split.h"
#include "router/store/digest.h"
#include "tests/router/router_fixture.h"

namespace serin::router {
namespace {

using rollout::Phase;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ServiceConfig kDigits = digits_config("unused").services[0];
constexpr uint32_t kFive = 50'000, kTwentyFive = 250'000;

/// Rollout digits-7 of version 2 on steps 5, 25, 50, as the database has it.
store::ServiceRecord kept(Phase phase, int step, uint32_t weight_ppm) {
  rollout::Spec spec = spec_of("2", {5, 25, 50});
  spec.stable = "1";
  store::RolloutRecord rollout{.spec = rollout::print_spec(spec)};
  rollout.report.state = {.id = "digits-7",
                          .service = "digits",
                          .stable = "1",
                          .canary = "2",
                          .epoch = 7,
                          .phase = phase,
                          .step = step,
                          .weight_ppm = weight_ppm};
  return {.service = "digits", .stable = "1", .epoch = 7, .rollout = rollout};
}

store::WeightsPage::Found page(Split split, std::vector<std::string> versions = {"1", "2", "3"}) {
  store::WeightsPage::Found found{.word = split.pack(), .epoch = split.epoch};
  for (const std::string& version : versions) found.versions.push_back(store::digest(version));
  return found;
}

const rollout::State& state(const Restored& restored) { return restored.rollout->report.state; }

TEST(Restore, VeryFirstStart) {
  const Restored restored = restore(kDigits, std::nullopt, std::nullopt);
  EXPECT_EQ(restored.stable, "1");
  EXPECT_EQ(restored.epoch, 0U);
  EXPECT_THAT(restored.events, IsEmpty());
}

TEST(Restore, GoesOnWhereItWas) {
  const Restored restored =
      restore(kDigits, kept(Phase::kProgressing, 1, kTwentyFive), page({.weight_ppm = kTwentyFive, .canary = 1, .epoch = 7}));
  EXPECT_EQ(state(restored).phase, Phase::kProgressing);
  EXPECT_EQ(state(restored).step, 1);
  EXPECT_EQ(state(restored).weight_ppm, kTwentyFive);
  EXPECT_EQ(restored.events.back().event, "restarted");
}

TEST(Restore, R6AVerdictThatOnlyThePageKnowsIsAVerdict) {
  auto found = page({.epoch = 8});
  found.cause = "err";
  found.reason = "err: 7 of 9";
  const Restored restored = restore(kDigits, kept(Phase::kProgressing, 1, kTwentyFive), found);
  EXPECT_EQ(state(restored).phase, Phase::kRolledBack);
  EXPECT_EQ(state(restored).weight_ppm, 0U);
  EXPECT_EQ(state(restored).cause, "err");
  EXPECT_EQ(state(restored).reason, "err: 7 of 9");
  EXPECT_GT(restored.epoch, 7U);
  EXPECT_EQ(restored.events.back().event, "rolled_back");
}

TEST(Restore, R6ARiseThatWasWrittenAndNotAppliedIsTakenBack) {
  const Restored restored =
      restore(kDigits, kept(Phase::kProgressing, 1, kTwentyFive), page({.weight_ppm = kFive, .canary = 1, .epoch = 7}));
  EXPECT_EQ(state(restored).phase, Phase::kProgressing);
  EXPECT_EQ(state(restored).weight_ppm, kFive);
  EXPECT_EQ(state(restored).step, 0) << "the step whose weight is applied: its certificate is asked for again";
}

TEST(Restore, R6APromotionThatWasWrittenAndNotAppliedIsTakenBack) {
  const Restored restored =
      restore(kDigits, kept(Phase::kPromoting, 2, rollout::kAll), page({.weight_ppm = kTwentyFive, .canary = 1, .epoch = 7}));
  EXPECT_EQ(state(restored).phase, Phase::kProgressing);
  EXPECT_EQ(state(restored).weight_ppm, kTwentyFive);
  EXPECT_EQ(state(restored).step, 1);
}

TEST(Restore, R6AStartThatWasNeverAppliedWaitsAtZero) {
  const Restored restored = restore(kDigits, kept(Phase::kProgressing, 0, kFive), page({.epoch = 6}));
  EXPECT_EQ(state(restored).phase, Phase::kPaused);
  EXPECT_EQ(state(restored).weight_ppm, 0U);
}

TEST(Restore, R6AnotherRolloutsWeightIsNotThisOnes) {
  const Restored restored =
      restore(kDigits, kept(Phase::kProgressing, 0, kFive), page({.weight_ppm = rollout::kAll, .canary = 2, .epoch = 6}));
  EXPECT_EQ(state(restored).phase, Phase::kPaused);
  EXPECT_EQ(state(restored).weight_ppm, 0U);
}

TEST(Restore, R6TheSmallerOfTwoWeightsSetByHand) {
  const auto both = restore(kDigits, kept(Phase::kPaused, 1, kFive), page({.weight_ppm = kTwentyFive, .canary = 1, .epoch = 7}));
  EXPECT_EQ(state(both).weight_ppm, kFive);
  const auto other = restore(kDigits, kept(Phase::kPaused, 1, kTwentyFive), page({.weight_ppm = kFive, .canary = 1, .epoch = 8}));
  EXPECT_EQ(state(other).weight_ppm, kFive);
  EXPECT_EQ(state(other).phase, Phase::kPaused);
}

TEST(Restore, AnEpochThatOnlyThePageKnowsIsNotGivenOutAgain) {
  auto ahead = page({.weight_ppm = rollout::kAll, .canary = 1, .epoch = 7});  // the end of a promotion was seen, and never written
  ahead.epoch = 8;
  const Restored restored = restore(kDigits, kept(Phase::kPromoting, 2, rollout::kAll), ahead);
  EXPECT_EQ(state(restored).phase, Phase::kPromoting);
  EXPECT_EQ(restored.epoch, 9U);
  ahead.epoch = 7;
  EXPECT_EQ(restore(kDigits, kept(Phase::kPromoting, 2, rollout::kAll), ahead).epoch, 7U);
}

TEST(Restore, S1AWeightThatNobodyKnowsIsZero) {
  const Restored restored = restore(kDigits, kept(Phase::kProgressing, 1, kTwentyFive), std::nullopt);
  EXPECT_EQ(state(restored).phase, Phase::kPaused);
  EXPECT_EQ(state(restored).weight_ppm, 0U);
  EXPECT_THAT(state(restored).reason, HasSubstr("weights page was lost"));
}

TEST(Restore, S2ALostDatabaseLeavesAllTrafficOnThePagesStable) {
  const Restored restored = restore(kDigits, std::nullopt, page({.weight_ppm = kFive, .stable = 1, .canary = 2, .epoch = 9}));
  EXPECT_EQ(restored.stable, "2") << "promoted some day: the configuration's initial one is long gone";
  EXPECT_FALSE(restored.rollout);
  EXPECT_GT(restored.epoch, 9U);
  EXPECT_EQ(restored.events.back().event, "state_lost");
}

TEST(Restore, IndicesOfAnEarlierConfigurationMeanItsVersions) {
  // Before, version 3 came first and 1 last: index 2 was stable, index 1 the canary.
  const Restored restored = restore(kDigits, kept(Phase::kProgressing, 1, kTwentyFive),
                                    page({.weight_ppm = kTwentyFive, .stable = 2, .canary = 1, .epoch = 7}, {"3", "2", "1"}));
  EXPECT_EQ(state(restored).weight_ppm, kTwentyFive);
  const Restored moved = restore(kDigits, std::nullopt, page({.stable = 0, .epoch = 7}, {"3", "2", "1"}));
  EXPECT_EQ(moved.stable, "3");
}

TEST(Restore, ACanaryThatIsNotConfiguredAnyMoreIsRolledBack) {
  ServiceConfig config = kDigits;
  config.versions.erase(config.versions.begin() + 1);
  const Restored restored =
      restore(config, kept(Phase::kProgressing, 1, kTwentyFive), page({.weight_ppm = kTwentyFive, .canary = 1, .epoch = 7}));
  EXPECT_EQ(state(restored).phase, Phase::kRolledBack);
  EXPECT_EQ(state(restored).cause, "configuration");
  EXPECT_THAT(state(restored).reason, HasSubstr("canary version '2' is not in the configuration"));
}

TEST(Restore, ABaselineArmThatIsNotConfiguredAnyMoreIsRolledBack) {
  auto stored = kept(Phase::kProgressing, 1, kTwentyFive);
  rollout::Spec spec = spec_of("2", {5, 25, 50});
  spec.stable = "1";
  spec.baseline = "1-fresh";
  stored.rollout->spec = rollout::print_spec(spec);
  const Restored restored = restore(kDigits, stored, page({.weight_ppm = kTwentyFive, .canary = 1, .epoch = 7}));
  EXPECT_EQ(state(restored).phase, Phase::kRolledBack);
  EXPECT_THAT(state(restored).reason, HasSubstr("'1-fresh' of the baseline arm"));
}

TEST(Restore, AStableThatIsNotConfiguredAnyMoreIsSaid) {
  ServiceConfig config = kDigits;
  config.versions.erase(config.versions.begin());
  config.initial_stable = "3";
  const Restored restored =
      restore(config, kept(Phase::kProgressing, 1, kTwentyFive), page({.weight_ppm = kTwentyFive, .canary = 1, .epoch = 7}));
  EXPECT_EQ(restored.stable, "3");
  EXPECT_EQ(restored.events.front().event, "stable_missing");
  EXPECT_EQ(state(restored).phase, Phase::kRolledBack);
}

// ---- a further track (tracks.h): the service says what is stable ----

TEST(RestoreOfATrack, ItsRolloutGoesOnWhileStableIsTheSame) {
  const Restored restored = restore(kDigits, kept(Phase::kProgressing, 1, kTwentyFive),
                                    page({.weight_ppm = kTwentyFive, .canary = 1, .epoch = 7}), /*stable_of_service=*/"1");
  EXPECT_EQ(state(restored).phase, Phase::kProgressing);
  EXPECT_EQ(state(restored).weight_ppm, kTwentyFive);
}

TEST(RestoreOfATrack, APromotionThatOnlyTheServiceWroteIsAPromotion) {
  const Restored restored =
      restore(kDigits, kept(Phase::kPromoting, 2, rollout::kAll), page({.weight_ppm = rollout::kAll, .canary = 1, .epoch = 7}), "2");
  EXPECT_EQ(restored.stable, "2");
  EXPECT_EQ(state(restored).phase, Phase::kSucceeded);
  EXPECT_EQ(restored.events.back().event, "promoted");
}

TEST(RestoreOfATrack, ARolloutAgainstAnEarlierStableEnds) {
  const Restored restored =
      restore(kDigits, kept(Phase::kProgressing, 1, kTwentyFive), page({.weight_ppm = kTwentyFive, .canary = 1, .epoch = 7}), "3");
  EXPECT_EQ(restored.stable, "3");
  EXPECT_EQ(state(restored).phase, Phase::kRolledBack);
  EXPECT_EQ(state(restored).weight_ppm, 0U);
  EXPECT_EQ(state(restored).cause, "superseded");
  EXPECT_GT(restored.epoch, 7U) << "answers of before are no evidence";
}

TEST(RestoreOfATrack, ANewOneBeginsWithTheStableOfTheService) {
  const Restored restored = restore(kDigits, std::nullopt, std::nullopt, "2");
  EXPECT_EQ(restored.stable, "2");
  EXPECT_THAT(restored.events, IsEmpty());
}

TEST(Restore, AFinishedRolloutStaysWhatItWas) {
  const Restored restored = restore(kDigits, kept(Phase::kRolledBack, 1, 0), std::nullopt);
  EXPECT_EQ(state(restored).phase, Phase::kRolledBack);
  EXPECT_THAT(restored.events, IsEmpty());
}

}  // namespace
}  // namespace serin::router
