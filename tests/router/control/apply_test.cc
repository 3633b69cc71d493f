#include "router/control/apply.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace serin::router {
namespace {

using rollout::Phase;

rollout::Spec wanted(std::string canary, std::string revision = "") {
  rollout::Spec spec;
  spec.service = "digits";
  spec.canary = std::move(canary);
  spec.revision = std::move(revision);
  return spec;
}

TrackRollout last(std::string id, std::string canary, Phase phase, std::string revision = "", int64_t started = 0) {
  TrackRollout of{.track = "digits", .revision = std::move(revision), .started_wall_ms = started};
  of.state.id = std::move(id);
  of.state.canary = std::move(canary);
  of.state.phase = phase;
  of.state.cause = "err";
  of.state.reason = "four bad answers";
  return of;
}

ApplyAction decided(const rollout::Spec& spec, const std::vector<TrackRollout>& tracks, std::string_view stable = "1") {
  return decide_apply(spec, tracks, stable).action;
}

TEST(Apply, StartsTheFirst) { EXPECT_EQ(decided(wanted("2"), {TrackRollout{.track = "digits"}}), ApplyAction::kStart); }

TEST(Apply, StartsNothingTwice) {
  for (const Phase phase :
       {Phase::kProgressing, Phase::kPaused, Phase::kInconclusive, Phase::kPromoting, Phase::kBaking, Phase::kSucceeded})
    EXPECT_EQ(decided(wanted("2"), {last("digits-1", "2", phase)}, phase == Phase::kSucceeded ? "2" : "1"), ApplyAction::kUnchanged)
        << rollout::phase_name(phase);
}

TEST(Apply, StartsAgainWhatWasReplacedAndNotJudged) {
  for (const char* cause : {"superseded", "configuration"}) {
    TrackRollout of = last("digits-1", "2", Phase::kRolledBack);
    of.state.cause = cause;
    EXPECT_EQ(decided(wanted("2"), {of}), ApplyAction::kStart) << cause;
    EXPECT_FALSE(was_rolled_back(wanted("2"), of)) << cause;
  }
  EXPECT_EQ(decided(wanted("2"), {last("digits-1", "2", Phase::kSucceeded)}, "3"), ApplyAction::kStart) << "promoted, and replaced since";
}

TEST(Apply, NeverBringsBackACanaryThatWasRolledBack) {
  const std::vector<TrackRollout> tracks = {last("digits-1", "2", Phase::kRolledBack, "a")};
  const ApplyDecision decision = decide_apply(wanted("2", "a"), tracks, "1");
  EXPECT_EQ(decision.action, ApplyAction::kBlocked);
  EXPECT_EQ(
      decision.message,
      "version '2' with revision 'a' was rolled back by 'digits-1' (err: four bad answers); another version or another revision permits a "
      "new rollout");
  EXPECT_EQ(decided(wanted("2", "b"), tracks), ApplyAction::kStart);
  EXPECT_EQ(decided(wanted("2"), tracks), ApplyAction::kStart);
  EXPECT_EQ(decided(wanted("3", "a"), tracks), ApplyAction::kStart);
}

TEST(Apply, ReplacesTheOneThatRuns) {
  const std::vector<TrackRollout> tracks = {last("digits-1", "2", Phase::kPaused)};
  EXPECT_EQ(decided(wanted("3"), tracks), ApplyAction::kReplace);
  EXPECT_EQ(decided(wanted("2", "b"), tracks), ApplyAction::kReplace);
}

TEST(Apply, StartsNextToOthersWhereSeveralMayRun) {
  const std::vector<TrackRollout> tracks = {last("digits-1", "2", Phase::kProgressing), last("digits~2-1", "3", Phase::kProgressing, "a"),
                                            TrackRollout{.track = "digits~3"}};
  EXPECT_EQ(decided(wanted("4"), tracks), ApplyAction::kStart);
  const ApplyDecision other = decide_apply(wanted("3", "b"), tracks, "1");
  EXPECT_EQ(other.action, ApplyAction::kReplace);
  EXPECT_EQ(other.of, &tracks[1]) << "the one with the same canary";
}

TEST(Apply, OfSeveralTheOneThatRunsDecidesAndElseTheLatest) {
  const std::vector<TrackRollout> running = {last("digits-2", "2", Phase::kRolledBack, "", 200),
                                             last("digits~2-1", "2", Phase::kProgressing, "", 100)};
  EXPECT_EQ(decided(wanted("2"), running), ApplyAction::kUnchanged);
  const std::vector<TrackRollout> over = {last("digits-2", "2", Phase::kSucceeded, "", 100),
                                          last("digits~2-1", "2", Phase::kRolledBack, "", 200)};
  EXPECT_EQ(decided(wanted("2"), over), ApplyAction::kBlocked);
}

TEST(Apply, LeavesWhatIsStable) {
  EXPECT_EQ(decided(wanted("2"), {TrackRollout{.track = "digits"}}, "2"), ApplyAction::kUnchanged);
  EXPECT_EQ(decided(wanted("2"), {last("digits-4", "3", Phase::kRolledBack)}, "2"), ApplyAction::kUnchanged);
}

TEST(Apply, ComparesWithTheSpecificationThatIsStored) {
  const auto document = config::Node::parse("service: digits\ncanary: {version: '2', sticky: {header: x-user}}\nsteps: [5]\n", "spec");
  ASSERT_TRUE(document);
  const auto spec = rollout::parse_spec(*document);
  ASSERT_TRUE(spec) << spec.error().message;
  rollout::Spec stored = *spec;
  stored.stable = "1";
  stored.sticky.salt = "drawn";
  TrackRollout of = last("digits-1", "2", Phase::kProgressing);
  of.state.stable = "1";
  of.spec = rollout::print_spec(stored);
  EXPECT_EQ(as_stored(*spec, &of), of.spec) << "what the start added is no difference";
  rollout::Spec other = *spec;
  other.steps.front().weight_ppm = 100'000;
  EXPECT_NE(as_stored(other, &of), of.spec);
}

}  // namespace
}  // namespace serin::router
