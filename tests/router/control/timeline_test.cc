// timeline_test.cc: what is kept of a rollout's way: bounded, in order, each guard's evidence beside the right moment.

#include "router/control/timeline.h"

#include <gtest/gtest.h>

#include "router/control/evidence_pace.h"
#include "router/control/recent_answers.h"

namespace serin::router {
namespace {

using std::chrono::seconds;

const rollout::Time kStart{std::chrono::hours(1)};

rollout::Evidence evidence(const char* guard, double bits) { return {.guard = guard, .bits = bits, .bits_to_trip = 11.7}; }

TEST(EvidencePace, TheSoonestVerdictAtThePaceOfTheLastTenSeconds) {
  EvidencePace pace;
  EXPECT_FALSE(pace.next());
  for (int i = 0; i <= 30; ++i)  // err: stood still for 20 s, then half a bit a second; dl: slower; rej falls
    pace.add({evidence("err", i < 20 ? 1 : 1 + 0.5 * (i - 20)), evidence("dl", 0.1 * i), evidence("rej", 10 - 0.1 * i)},
             kStart + seconds(i));
  ASSERT_TRUE(pace.next());
  EXPECT_EQ(pace.next()->guard, "err");
  EXPECT_NEAR(pace.next()->seconds, (11.7 - 6) / 0.5, 0.01);
}

TEST(EvidencePace, NothingWhereNoEvidenceGrows) {
  EvidencePace pace;
  for (int i = 0; i <= 30; ++i) {
    rollout::Evidence rehearsed = evidence("out_label", 0.3 * i);
    rehearsed.dry_run = true;
    pace.add({evidence("err", 3), evidence("dl", -5 + 0.1 * i), rehearsed}, kStart + seconds(i));
  }
  EXPECT_FALSE(pace.next());
  pace.add({evidence("err", 4)}, kStart + std::chrono::milliseconds(30'200));
  EXPECT_TRUE(pace.next());
  pace.clear();
  EXPECT_FALSE(pace.next());
}

TEST(Timeline, TakesAPointASecond) {
  Timeline timeline;
  timeline.clear(kStart);
  for (int i = 0; i < 30; ++i) timeline.add({.weight_ppm = 50'000}, {}, kStart + i * std::chrono::milliseconds(100));
  ASSERT_EQ(timeline.points().size(), 3U);
  EXPECT_EQ(timeline.points()[1].at, seconds(1));
}

TEST(Timeline, AWeightThatStoodForAMomentIsKept) {
  Timeline timeline;
  timeline.clear(kStart);
  for (const uint32_t weight : {0, 50'000, 50'000, 0, 0})
    timeline.add({.weight_ppm = weight}, {}, kStart + static_cast<int>(timeline.points().size()) * std::chrono::milliseconds(100));
  ASSERT_EQ(timeline.points().size(), 3U);
  EXPECT_EQ(timeline.points()[1].weight_ppm, 50'000U);
  EXPECT_EQ(timeline.points()[2].at, std::chrono::milliseconds(200));
}

TEST(Timeline, ALongRolloutIsThinnedOutAndKeepsItsBeginningAndItsEnd) {
  Timeline timeline;
  timeline.clear(kStart);
  for (int i = 0; i < 100'000; ++i)
    timeline.add({.stable = {.answers = static_cast<uint64_t>(i)}}, {evidence("err", i)}, kStart + seconds(i));
  const auto& points = timeline.points();
  EXPECT_LE(points.size(), Timeline::kMostPoints);
  EXPECT_GT(points.size(), Timeline::kMostPoints / 2 - 1);
  EXPECT_EQ(points.front().at, seconds(0));
  EXPECT_GT(points.back().at, seconds(99'000));
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].at, seconds(points[i].stable.answers));
    EXPECT_EQ(timeline.guards().at("err").bits[i], static_cast<float>(points[i].stable.answers)) << "evidence stays beside its moment";
    EXPECT_EQ(points[i].at, static_cast<int>(i) * points[1].at) << "evenly";
  }
}

TEST(Timeline, AGuardThatComesLateOrGoesHasNoEvidenceMeanwhile) {
  Timeline timeline;
  timeline.clear(kStart);
  timeline.add({}, {evidence("err", 1)}, kStart);
  timeline.add({}, {evidence("err", 2), evidence("out_label_3_often", 5)}, kStart + seconds(1));
  timeline.add({}, {evidence("err", -3)}, kStart + seconds(2));
  EXPECT_EQ(timeline.guards().at("err").bits, (std::vector<float>{1, 2, 0})) << "for the canary is as good as none against it";
  EXPECT_EQ(timeline.guards().at("out_label_3_often").bits, (std::vector<float>{0, 5, 0}));
}

TEST(Timeline, NamesOfGuardsAreBounded) {
  Timeline timeline;
  timeline.clear(kStart);
  for (int i = 0; i < 500; ++i) timeline.add({}, {evidence(("label " + std::to_string(i)).c_str(), 1)}, kStart + seconds(i));
  EXPECT_EQ(timeline.guards().size(), Timeline::kMostGuards);
}

rollout::Observation answered(int milliseconds, rollout::Outcome outcome = rollout::Outcome::kOk) {
  return {.outcome = outcome, .latency = std::chrono::milliseconds(milliseconds)};
}

TEST(RecentAnswers, QuantilesAreThoseOfGoodAnswersAndOldOnesAreForgotten) {
  RecentAnswers recent;
  recent.turn(kStart);
  for (int i = 1; i <= 100; ++i) recent.record(answered(i));
  recent.record(answered(5000, rollout::Outcome::kError));
  recent.record(answered(0, rollout::Outcome::kNeutral));
  const AnswerSummary summary = recent.summary(kStart + seconds(5));
  EXPECT_EQ(summary.seconds, 5);
  EXPECT_EQ(summary.answers, 102U);
  EXPECT_EQ(summary.failures, 1U);
  EXPECT_NEAR(std::chrono::duration<double>(summary.p50).count(), 0.050, 0.001);
  EXPECT_NEAR(std::chrono::duration<double>(summary.p99).count(), 0.099, 0.001);
  recent.turn(kStart + RecentAnswers::kTurn);
  EXPECT_EQ(recent.summary(kStart + seconds(15)).answers, 102U) << "still recent";
  recent.turn(kStart + 2 * RecentAnswers::kTurn);
  const AnswerSummary later = recent.summary(kStart + seconds(25));
  EXPECT_EQ(later.answers, 0U);
  EXPECT_EQ(later.p99.count(), 0);
  EXPECT_EQ(later.seconds, 15);
}

}  // namespace
}  // namespace serin::router
