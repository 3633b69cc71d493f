// timeline_columns.h: The course of a rollout as the admin API has it, described once (runtime/base/schema.h).
//
// It has columns: 600 objects of the same twelve names would be four times as long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/schema.h"

namespace serin::router::view {

struct TimelineArm {
  std::vector<uint64_t> answers, failures;
  std::vector<double> p50_ms, p90_ms, p99_ms;
};
inline constexpr auto kTimelineArm = schema::object<TimelineArm>(
    "TimelineArm", "The latest answers of one version at each moment.", schema::field("answers", &TimelineArm::answers, "How many."),
    schema::field("failures", &TimelineArm::failures, "Errors, refusals and missed deadlines among them."),
    schema::field("p50_ms", &TimelineArm::p50_ms, "Latency of good answers; 0: there was none.", {.digits = 4}),
    schema::field("p90_ms", &TimelineArm::p90_ms, "The same.", {.digits = 4}),
    schema::field("p99_ms", &TimelineArm::p99_ms, "The same.", {.digits = 4}));

struct EvidenceCurve {
  std::string guard;
  double bits_to_trip = 0;
  std::vector<float> bits;
};
inline constexpr auto kEvidenceCurve = schema::object<EvidenceCurve>(
    "EvidenceCurve", "The evidence of one guard.", schema::field("guard", &EvidenceCurve::guard, "Its name."),
    schema::field("bits_to_trip", &EvidenceCurve::bits_to_trip, "log2 of its threshold, at last.", {.digits = 4}),
    schema::field("bits", &EvidenceCurve::bits, "log2 of its e-value at each moment, at least 0.", {.digits = 3}));

struct Timeline {
  std::string service;
  std::vector<int64_t> at_ms;
  std::vector<uint32_t> weight_ppm, shadow_ppm;
  TimelineArm stable, canary;
  std::vector<EvidenceCurve> evidence;
};
inline constexpr auto kTimeline = schema::object<Timeline>(
    "Timeline", "Columns of equal length, with one place for each moment.", schema::field("service", &Timeline::service, "Its name."),
    schema::field("at_ms", &Timeline::at_ms, "The moments, since the rollout began.", {.least = 0}),
    schema::field("weight_ppm", &Timeline::weight_ppm, "Of the canary, in parts per million."),
    schema::field("shadow_ppm", &Timeline::shadow_ppm, "Of stable's requests that are mirrored to the canary."),
    schema::field<kTimelineArm>("stable", &Timeline::stable, "The answers of stable."),
    schema::field<kTimelineArm>("canary", &Timeline::canary, "The answers of the canary."),
    schema::field<kEvidenceCurve>("evidence", &Timeline::evidence, "One curve for each guard."));

}  // namespace serin::router::view
