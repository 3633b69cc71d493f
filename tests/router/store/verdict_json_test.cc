// The bytes of a stored verdict: every digit of its numbers, so that it replays.

#include "router/store/verdict_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

namespace serin::store {
namespace {

using std::chrono::milliseconds;

RolloutRecord rolled_back() {
  RolloutRecord record{.spec = "kind: Rollout\ncanary: \"2\"\n", .started_wall_ms = 1'770'091'500'000, .seconds = 6.7891};
  record.report.state = {.id = "digits-7",
                         .service = "digits",
                         .stable = "1",
                         .canary = "2",
                         .phase = rollout::Phase::kRolledBack,
                         .cause = "err",
                         .reason = "err: \"5\" of 5"};
  record.report.stable_answers = 98;
  record.report.canary_answers = 5;
  record.report.shadow_answers = 2;
  record.report.step_canary_answers = 4;
  record.report.evidence = {{.guard = "err", .bits = 18.345678901234567, .bits_to_trip = 14.3, .stable_events = 1, .canary_events = 5},
                            {.guard = "dl", .bits = -std::numeric_limits<double>::infinity(), .dry_run = true}};
  record.report.dry_run = {{.at = milliseconds(1700), .guard = "out_label", .reason = "would\thave"}};
  return record;
}

constexpr const char* kHead =
    R"({"id":"digits-7","service":"digits","stable":"1","canary":"2","phase":"RolledBack","cause":"err","reason":"err: \"5\" of 5",)"
    R"("wall_ms":1770091506789,"started_wall_ms":1770091500000,"seconds":6.789,"answers":{"stable":98,"canary":5,"shadow":2},)"
    R"("spec":"kind: Rollout\ncanary: \"2\"\n",)"
    R"("evidence":[{"guard":"err","bits":18.345678901234567,"bits_to_trip":14.3,"stable_events":1,"canary_events":5,"dry_run":false},)"
    R"({"guard":"dl","bits":0,"bits_to_trip":0,"stable_events":0,"canary_events":0,"dry_run":true}],)"
    R"("dry_run":[{"at_ms":1700,"guard":"out_label","reason":"would\thave"}],"record":)";

TEST(VerdictJson, HasTheRecordWithEveryDigit) {
  const rollout::VerdictRecord record{
      .guard = "err",
      .question = rollout::VerdictRecord::Question::kAboveAndWorse,
      .trip_value = 20'000.000000000004,
      .tolerated_ratio = 1.1,
      .mirrored = true,
      .p0 = 1e-05,
      .cap = 1e300,
      .worse = {.mixture = {1, 0.1, 0.30000000000000004, 1e-300, 0, 2, 3, 4}, .unused_mass = 0.5, .count = 12},
      .above = {},
      .events = {{.at = milliseconds(1500), .arm = rollout::Arm::kCanary, .share = 0.05, .bits = 1.2345678901234567, .units = 1},
                 {.at = milliseconds(1600),
                  .arm = rollout::Arm::kStable,
                  .share = 0.2,
                  .bits = -0.5,
                  .units = 0.25,
                  .bad = false,
                  .good_before = 17,
                  .alone = true,
                  .rank = 7,
                  .one_sided = true}}};
  EXPECT_EQ(
      verdict_json(rolled_back(), record, 1'770'091'506'789),
      fmt::format("{}{}", kHead,
                  R"({"guard":"err","question":"above and worse","trip_value":20000.000000000004,"tolerated_ratio":1.1,"mirrored":true,)"
                  R"("p0":1e-05,"cap":1e+300,"worse":{"mixture":[1,0.1,0.30000000000000004,1e-300,0,2,3,4],"unused_mass":0.5,"count":12},)"
                  R"("above":{"mixture":[0,0,0,0,0,0,0,0],"unused_mass":1,"count":0},)"
                  R"("events":[{"at_ms":1500,"arm":"canary","bad":true,"share":0.05,"units":1,"good_before":0,"alone":false,)"
                  R"("rank":0,"one_sided":false,"bits":1.2345678901234567},)"
                  R"({"at_ms":1600,"arm":"stable","bad":false,"share":0.2,"units":0.25,"good_before":17,"alone":true,)"
                  R"("rank":7,"one_sided":true,"bits":-0.5}]}})"));
}

TEST(VerdictJson, SaysNullWhereNoGuardDecided) {
  EXPECT_EQ(verdict_json(rolled_back(), {}, 1'770'091'506'789), fmt::format("{}null}}", kHead));
  EXPECT_EQ(verdict_json({}, {}, 0),
            R"({"id":"","service":"","stable":"","canary":"","phase":"Progressing","cause":"","reason":"","wall_ms":0,"started_wall_ms":0,)"
            R"("seconds":0.000,"answers":{"stable":0,"canary":0,"shadow":0},"spec":"","evidence":[],"dry_run":[],"record":null})");
}

}  // namespace
}  // namespace serin::store
