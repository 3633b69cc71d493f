// The bytes of the answers: the order of the fields, how many digits a number has, what is null and what is left out. Pipelines depend on them.

#include "router/view/status_json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/router/router_fixture.h"

namespace serin::router {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

AnswerSummary answers() {
  return {.seconds = 12.34567,
          .answers = 12'345'678,
          .failures = 3,
          .p50 = microseconds(1234),
          .p90 = microseconds(23'456),
          .p99 = milliseconds(1'234'567)};
}

/// Every list has an element, and every optional a value.
ServiceStatus full_status() {
  rollout::Report report;
  report.state = {.id = "digits-7",
                  .service = "digits",
                  .stable = "1",
                  .canary = "2 \"new\"",
                  .epoch = 9,
                  .phase = rollout::Phase::kRolledBack,
                  .step = 1,
                  .weight_ppm = 125'000,
                  .shadow_ppm = 5'000,
                  .cause = "err",
                  .reason = "err: 5 of 5\nbad"};
  report.stable_answers = 1000;
  report.canary_answers = 200;
  report.shadow_answers = 30;
  report.step_canary_answers = 4;
  report.evidence = {{.guard = "err", .bits = 18.34567, .bits_to_trip = 14.28771, .stable_events = 1, .canary_events = 5},
                     {.guard = "threshold:errors", .bits = -std::numeric_limits<double>::infinity(), .dry_run = true}};
  report.certificates = {{.margin = "errors +1.0 %", .progress = 1.0 / 3}, {.margin = "shadow", .progress = 1}};
  report.leading_guard = "err";
  report.events = {{.at = milliseconds(1500), .arm = rollout::Arm::kCanary, .share = 0.05, .bits = 1.23456, .units = 1},
                   {.at = milliseconds(1600), .arm = rollout::Arm::kStable, .share = 1e-7, .bits = 123'456.7, .units = 0.25}};
  report.dry_run = {{.at = milliseconds(1700), .guard = "out_label", .reason = "would have"}};
  report.shadow = {.compared = 100,
                   .mismatches = 2,
                   .labels = 1,
                   .largest_absolute = 0.123456789,
                   .largest_relative = std::numeric_limits<double>::infinity(),
                   .mean_score = -1.5,
                   .examples = {{.at = milliseconds(20)},
                                {.at = milliseconds(30),
                                 .difference = rollout::Difference{.label = true,
                                                                   .absolute = 0.5,
                                                                   .relative = 0.25,
                                                                   .score = 0.125,
                                                                   .stable_label = 7,
                                                                   .canary_label = 9,
                                                                   .stable_score = 0.75}}}};
  report.resources = {
      {.guard = "res_memory", .stable = 5e8, .canary = 6e8, .growth = 1'234'567, .growth_least = 1e6, .seconds_left = 486.123},
      {.guard = "res_gpu", .note = "not judged"}};
  report.step_seconds = 10.1;
  report.step_eta_seconds = 41.23456;
  report.note = "waits for traffic";
  return {.service = "digits",
          .stable = "1",
          .epoch = 18'446'744'073'709'551'615U,
          .recent_stable = answers(),
          .recent_canary = {},
          .rollout = report,
          .rollout_steps = 4,
          .rollout_seconds = 61.5,
          .next_verdict = NextTrip{.guard = "err", .seconds = 12.345},
          .warm = ServiceStatus::Warm{.version = "0", .seconds = 299.96},
          .replicas = ReplicasStatus{.self = "a",
                                     .leader = "b",
                                     .leader_admin = "http://b:8081",
                                     .leads = false,
                                     .reachable = true,
                                     .behind_seconds = 0.25,
                                     .untold = 2,
                                     .members = {{.id = "a", .admin = "http://a:8081"}, {.id = "b", .admin = "http://b:8081"}}}};
}

TEST(StatusJson, HasEveryField) {
  EXPECT_EQ(
      status_json(full_status()),
      R"({"service":"digits","stable":"1","epoch":18446744073709551615,"warm":{"version":"0","seconds":300.0},)"
      R"("recent":{"stable":{"seconds":12.35,"answers":12345678,"failures":3,"p50_ms":1.234,"p90_ms":23.46,"p99_ms":1.235e+06},)"
      R"("canary":{"seconds":0,"answers":0,"failures":0,"p50_ms":0,"p90_ms":0,"p99_ms":0}},)"
      R"("rollout":{"id":"digits-7","stable":"1","canary":"2 \"new\"","phase":"RolledBack","step":1,"steps":4,"weight":12.5,"weight_ppm":125000,)"
      R"("shadow_ppm":5000,"cause":"err","reason":"err: 5 of 5\nbad","note":"waits for traffic","seconds":61.500,"step_seconds":10.100,)"
      R"("step_eta_seconds":41.235,"next_verdict":{"guard":"err","seconds":12.3},)"
      R"("answers":{"stable":1000,"canary":200,"shadow":30,"step_canary":4},)"
      R"("evidence":[{"guard":"err","bits":18.35,"bits_to_trip":14.29,"stable_events":1,"canary_events":5,"dry_run":false},)"
      R"({"guard":"threshold:errors","bits":0,"bits_to_trip":0,"stable_events":0,"canary_events":0,"dry_run":true}],)"
      R"("certificates":[{"margin":"errors +1.0 %","progress":0.3333},{"margin":"shadow","progress":1}],"leading_guard":"err",)"
      R"("events":[{"at_ms":1500,"arm":"canary","share":0.05,"units":1,"bits":1.235},)"
      R"({"at_ms":1600,"arm":"stable","share":1e-07,"units":0.25,"bits":1.235e+05}],)"
      R"("dry_run":[{"at_ms":1700,"guard":"out_label","reason":"would have"}],)"
      R"("shadow":{"compared":100,"mismatches":2,"labels":1,"largest_absolute":0.123457,"largest_relative":0,"mean_score":-1.5,)"
      R"("examples":[{"at_ms":20,"form":true},{"at_ms":30,"stable_label":7,"canary_label":9,"stable_score":0.75,"canary_score":0.875,)"
      R"("absolute":0.5,"relative":0.25}]},)"
      R"("resources":[{"guard":"res_memory","stable":5e+08,"canary":6e+08,"growth":1.235e+06,"growth_least":1e+06,"seconds_left":486.1,"note":""},)"
      R"({"guard":"res_gpu","stable":null,"canary":null,"growth":null,"growth_least":null,"seconds_left":null,"note":"not judged"}]},)"
      R"("replicas":{"self":"a","leader":"b","store_reachable":true,"behind_seconds":0.250,"untold_verdicts":2,)"
      R"("alive":[{"name":"a","admin":"http://a:8081","leads":false},{"name":"b","admin":"http://b:8081","leads":true}]}})");
}

TEST(StatusJson, LeavesOutReplicasAndSaysNullForTheRest) {
  EXPECT_EQ(status_json({.service = "digits", .stable = "1", .epoch = 1}),
            R"({"service":"digits","stable":"1","epoch":1,"warm":null,)"
            R"("recent":{"stable":{"seconds":0,"answers":0,"failures":0,"p50_ms":0,"p90_ms":0,"p99_ms":0},)"
            R"("canary":{"seconds":0,"answers":0,"failures":0,"p50_ms":0,"p90_ms":0,"p99_ms":0}},"rollout":null})");
  ServiceStatus begun{.service = "digits", .stable = "1", .epoch = 1};
  begun.rollout.emplace();
  EXPECT_EQ(
      status_json(begun),
      R"({"service":"digits","stable":"1","epoch":1,"warm":null,)"
      R"("recent":{"stable":{"seconds":0,"answers":0,"failures":0,"p50_ms":0,"p90_ms":0,"p99_ms":0},)"
      R"("canary":{"seconds":0,"answers":0,"failures":0,"p50_ms":0,"p90_ms":0,"p99_ms":0}},)"
      R"("rollout":{"id":"","stable":"","canary":"","phase":"Progressing","step":0,"steps":0,"weight":0,"weight_ppm":0,"shadow_ppm":0,)"
      R"("cause":"","reason":"","note":"","seconds":0.000,"step_seconds":0.000,"step_eta_seconds":null,"next_verdict":null,)"
      R"("answers":{"stable":0,"canary":0,"shadow":0,"step_canary":0},"evidence":[],"certificates":[],"leading_guard":"","events":[],)"
      R"("dry_run":[],"shadow":{"compared":0,"mismatches":0,"labels":0,"largest_absolute":0,"largest_relative":0,"mean_score":0,)"
      R"("examples":[]},"resources":[]}})");
}

TEST(TimelineJson, HasAColumnForEachQuantity) {
  Timeline timeline;
  const rollout::Time start{std::chrono::hours(1)};
  timeline.clear(start);
  timeline.add({.weight_ppm = 50'000, .shadow_ppm = 1'000, .stable = answers()},
               {{.guard = "err", .bits = 1.23456, .bits_to_trip = 14.28771}}, start);
  timeline.add({.weight_ppm = 50'000, .canary = answers()}, {{.guard = "dl", .bits = 12'345, .bits_to_trip = 9.965784}},
               start + milliseconds(1234));
  EXPECT_EQ(
      timeline_json("digits", timeline),
      R"({"service":"digits","at_ms":[0,1234],"weight_ppm":[50000,50000],"shadow_ppm":[1000,0],)"
      R"("stable":{"answers":[12345678,0],"failures":[3,0],"p50_ms":[1.234,0],"p90_ms":[23.46,0],"p99_ms":[1.235e+06,0]},)"
      R"("canary":{"answers":[0,12345678],"failures":[0,3],"p50_ms":[0,1.234],"p90_ms":[0,23.46],"p99_ms":[0,1.235e+06]},)"
      R"("evidence":[{"guard":"dl","bits_to_trip":9.966,"bits":[0,1.23e+04]},{"guard":"err","bits_to_trip":14.29,"bits":[1.23,0]}]})");
  EXPECT_EQ(timeline_json("none", Timeline()),
            R"({"service":"none","at_ms":[],"weight_ppm":[],"shadow_ppm":[],)"
            R"("stable":{"answers":[],"failures":[],"p50_ms":[],"p90_ms":[],"p99_ms":[]},)"
            R"("canary":{"answers":[],"failures":[],"p50_ms":[],"p90_ms":[],"p99_ms":[]},"evidence":[]})");
}

TEST(HistoryJson, HasTimeAndShareInTwoForms) {
  const store::HistoryEntry entry{.id = 7,
                                  .wall_ms = 1'770'091'506'789,
                                  .service = "digits",
                                  .rollout = "digits-3",
                                  .event = "weight",
                                  .actor = "ann \\ bob",
                                  .detail = "says \"why\"\xFF",
                                  .weight_ppm = 333'333,
                                  .previous = "00ff",
                                  .digest = "ff00"};
  const std::string printed =
      R"({"id":7,"time":"2026-02-03T04:05:06.789Z","wall_ms":1770091506789,"service":"digits","rollout":"digits-3","event":"weight",)"
      R"("actor":"ann \\ bob","detail":"says \"why\")"
      "\xEF\xBF\xBD"
      R"(","weight":33.3333,"weight_ppm":333333,"previous":"00ff","digest":"ff00"})";
  EXPECT_EQ(history_json("digits", {entry, entry}), R"({"service":"digits","history":[)" + printed + "," + printed + "]}");
  EXPECT_EQ(history_json("digits", {}), R"({"service":"digits","history":[]})");
}

TEST(ServiceJson, SaysNullUntilEndpointsWereAsked) {
  const TestFolder folder;
  const RouterConfig config = digits_config(folder.file("router.db"));
  metrics::Registry metrics;
  const auto controller = open_controller(config, metrics);
  controller->set_endpoint_count(0, 1, {.all = 3, .healthy = 2});
  EXPECT_EQ(service_json(config.services[0], *controller->status("digits"), *controller, 0),
            R"({"name":"digits","stable":"1","epoch":0,"versions":[)"
            R"({"name":"1","weight":100,"weight_ppm":1000000,"endpoints":1,"healthy":null},)"
            R"({"name":"2","weight":0,"weight_ppm":0,"endpoints":3,"healthy":2},)"
            R"({"name":"3","weight":0,"weight_ppm":0,"endpoints":1,"healthy":null}]})");
}

}  // namespace
}  // namespace serin::router
