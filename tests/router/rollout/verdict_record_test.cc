// A recorded verdict replays to the same decision, whatever guard it came from and however long it had listened before.

#include "router/rollout/replay.h"

#include <gmock/gmock.h>

#include <cmath>

#include "router/rollout/verdict_schema.h"
#include "runtime/base/schema_json.h"
#include "simulation.h"

namespace serin::rollout {
namespace {

struct Case {
  const char* name;
  const char* spec;
  Fault fault;
  const char* cause;
};

class Verdicts : public testing::TestWithParam<Case> {};

TEST_P(Verdicts, ReplayToTheSameDecision) {
  const Case& given = GetParam();
  int verdicts = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Simulation simulation(spec_of(given.spec), given.fault, seed);
    simulation.run(200'000);
    const Rollout& rollout = simulation.rollout();
    if (!simulation.rolled_back()) continue;
    ++verdicts;
    EXPECT_THAT(rollout.state().cause, testing::HasSubstr(given.cause));

    const std::string text = schema::to_json(kVerdictRecord, rollout.explain());
    const auto record = parse_record(config::Node::parse(text, "record").value());
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(schema::to_json(kVerdictRecord, *record), text) << "not a digit is lost";
    EXPECT_EQ(record->guard, rollout.state().cause);
    const Replay again = replay(*record);
    EXPECT_TRUE(again.rolled_back);
    EXPECT_EQ(again.decided_by, record->events.size() - 1) << "not an event earlier, not one later";
    for (size_t i = 0; i < record->events.size(); ++i) EXPECT_EQ(again.bits[i], record->events[i].bits) << "event " << i;
  }
  EXPECT_GT(verdicts, 20);
}

INSTANTIATE_TEST_SUITE_P(
    Of, Verdicts,
    testing::Values(Case{"Errors", "steps: [5, 100]", {.stable = 0.01, .canary = 0.5}, "err"},
                    Case{"AFewErrorsAfterMany", "steps: [{setWeight: 20, until: {duration: 100h}}]", {.stable = 0.2, .canary = 0.3}, "err"},
                    Case{"Batches",
                         "steps: [{setWeight: 20, until: {duration: 100h}}]",
                         {.stable = 0.05, .canary = 0.5, .whole_batch = true, .largest_batch = {8, 4}},
                         "err"},
                    Case{"Latency",
                         "steps: [{setWeight: 20, until: {duration: 100h}}]\nguard: {latency: {floor: 0}}",
                         {.judged_on_latency = true, .canary_slower = 2},
                         "lat_"},
                    Case{"LatencyInBatches",
                         "steps: [{setWeight: 20, until: {duration: 100h}}]\nguard: {latency: {floor: 0}}",
                         {.largest_batch = {4, 4}, .judged_on_latency = true, .known_before = false, .canary_slower = 3},
                         "lat_rank"},
                    Case{"LatencyOfStickyUsers",
                         "steps: [{setWeight: 20, until: {duration: 100h}}]\ncanary: {version: 2, sticky: {header: x-user}}\n"
                         "guard: {latency: {floor: 0}}",
                         {.stable = 0, .canary = 0, .judged_on_latency = true, .canary_slower = 2, .users = 20'000},
                         "lat_"},
                    Case{"Shadow", "", {.disagreement = 0.5}, "shadow"},
                    Case{"Threshold",
                         "steps: [{setWeight: 95, until: {duration: 100h}}]\nguard: {errors: {max: 1%}, whenStableBreachesToo: rollback}",
                         {.stable = 0, .canary = 0.05},
                         "threshold:errors"},
                    Case{"ALabelThatIsGone",
                         "steps: [{setWeight: 20, until: {duration: 100h}}]\nguard: {output: {drift: 2}}",
                         {.first_label = {0.4, 0}},
                         "out_label_0_rarely"},
                    Case{"ALabelTooOften",
                         "steps: [{setWeight: 20, until: {duration: 100h}}]\nguard: {output: {drift: 2}}",
                         {.first_label = {0.1, 1}},
                         "out_label_0_often"},
                    Case{"ThresholdAndComparison",
                         "steps: [{setWeight: 60, until: {duration: 100h}}]\nguard: {errors: {max: 0.5%}}\ndryRun: [err]",
                         {.stable = 0.002, .canary = 0.2},
                         "threshold:errors"}),
    [](const auto& given) { return given.param.name; });

TEST(VerdictRecord, RefusesWhatIsNone) {
  for (const char* text : {"[]", "{question: better}", "{events: []}", "{worse: {mixture: [1]}, above: {mixture: []}, events: []}",
                           R"({"worse":{"mixture":[0,0,0,0,0,0,0,0]},"above":{"mixture":[0,0,0,0,0,0,0,0]},"events":[{"arm":"both"}]})"})
    EXPECT_FALSE(parse_record(config::Node::parse(text, "record").value())) << text;
}

TEST(VerdictRecord, AnotherThresholdIsAnotherDecision) {
  Simulation simulation(spec_of("steps: [5, 100]"), {.stable = 0.01, .canary = 0.5}, 1);
  simulation.run(100'000);
  VerdictRecord record = simulation.rollout().explain();
  ASSERT_TRUE(replay(record).rolled_back);
  record.trip_value *= 1000;
  EXPECT_FALSE(replay(record).rolled_back);
  record.trip_value /= 1000;
  record.events.pop_back();
  EXPECT_FALSE(replay(record).rolled_back) << "without the deciding event";
}

TEST(VerdictRecord, SilencesAndSamplesAreCounted) {
  VerdictRecord record{.guard = "prometheus:queue", .question = VerdictRecord::Question::kSamples, .trip_value = 3, .p0 = 100};
  for (double value : {101.0, 102.0, 100.0, 200.0, 200.0, 200.0}) record.events.push_back({.arm = Arm::kCanary, .share = value});
  EXPECT_EQ(replay(record).bits, (std::vector<double>{1, 2, 0, 1, 2, 3}));
  EXPECT_EQ(replay(record).decided_by, 5u);
  record.events.pop_back();
  EXPECT_FALSE(replay(record).rolled_back);
  record.question = VerdictRecord::Question::kSilence;
  EXPECT_EQ(replay(record).decided_by, 2u);
}

}  // namespace
}  // namespace serin::rollout
