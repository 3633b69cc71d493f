// verdict_schema.h: Describes the record of a verdict (verdict_record.h) as it is stored, with every digit, so that it replays.
#pragma once

#include "router/rollout/verdict_record.h"
#include "runtime/base/schema.h"

namespace serin::rollout {

inline constexpr auto kMixtureState = schema::object<MixtureState>(
    "MixtureState", "A test process before the first of the events.",
    schema::field("mixture", &MixtureState::mixture, "The likelihood ratio of each alternative."),
    schema::field("unused_mass", &MixtureState::unused_mass, "Of the change-point prior.", {.least = 0, .most = 1}),
    schema::field("count", &MixtureState::count, "Events or answers so far."));

inline constexpr auto kRecordedEvent = schema::object<DecidingEvent>(
    "RecordedEvent", "An event that the guard judged.", schema::field("at_ms", &DecidingEvent::at, "Since the rollout began."),
    schema::field("arm", &DecidingEvent::arm, "The version that answered."),
    schema::field("bad", &DecidingEvent::bad, "false: an answer within a limit set by the user."),
    schema::field("share", &DecidingEvent::share,
                  "The canary's share of such answers that chance alone explains. Of a sample: its value; of outcomes the difference of "
                  "their means."),
    schema::field("units", &DecidingEvent::units, "Pieces of evidence that it counts for."),
    schema::field("good_before", &DecidingEvent::good_before,
                  "Canary answers within that limit since the previous event. Of outcomes: reports before the last one."),
    schema::field("alone", &DecidingEvent::alone, "Stable got no traffic: the limit decides alone."),
    schema::field("rank", &DecidingEvent::rank,
                  "Of a latency: how many of stable's p25, p50, p75, p90, p97, p99, 2 and 4 times p99 it exceeds. 9: stable failed."),
    schema::field("one_sided", &DecidingEvent::one_sided, "The share is not exact, so that a fast answer is no evidence."),
    schema::field("same", &DecidingEvent::same, "Of a mirrored pair: whether both answers are numerically the same.",
                  {.may_be_absent = true}),
    schema::field("bits", &DecidingEvent::bits, "log2 of the guard's e-value after it."));

inline constexpr auto kVerdictRecord = schema::object<VerdictRecord>(
    "VerdictRecord", "The reason for the decision of a guard, in numbers that replay to it.",
    schema::field("guard", &VerdictRecord::guard, "Its name."),
    schema::field("question", &VerdictRecord::question, "The test that it makes."),
    schema::field("trip_value", &VerdictRecord::trip_value, "The e-value, or the number of events, that rolls back."),
    schema::field("tolerated_ratio", &VerdictRecord::tolerated_ratio, "The multiple of stable's bad rate that the canary may have."),
    schema::field("mirrored", &VerdictRecord::mirrored, "It asks the reverse: whether events are too rare on the canary."),
    schema::field("p0", &VerdictRecord::p0, "The limit of the rate."),
    schema::field("cap", &VerdictRecord::cap, "The largest e-value of the process against the limit."),
    schema::field<kMixtureState>("worse", &VerdictRecord::worse, "The process against stable."),
    schema::field<kMixtureState>("above", &VerdictRecord::above, "The process against the limit."),
    schema::field("same_p0", &VerdictRecord::same_p0, "The share of equal answers that two models may have.", {.may_be_absent = true}),
    schema::field<kMixtureState>("same", &VerdictRecord::same, "The process that shows both versions to be the same model.",
                                 {.may_be_absent = true}),
    schema::field<kRecordedEvent>("events", &VerdictRecord::events, "Oldest first."));

}  // namespace serin::rollout
