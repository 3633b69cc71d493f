// report_schema.h: Describes the parts of a report (report.h) as users see them: in the status, and in a stored verdict.
#pragma once

#include "router/rollout/report.h"
#include "router/rollout/resources.h"
#include "runtime/base/schema.h"

namespace serin::rollout {

inline constexpr auto kEvidence =
    schema::object<Evidence>("Evidence", "Evidence of one guard against the canary. It is rolled back once bits reach bits_to_trip.",
                             schema::field("guard", &Evidence::guard, "err, rej, dl, lat_rank, shadow, threshold:errors, ..."),
                             schema::field("bits", &Evidence::bits, "log2 of the e-value.", {.digits = 4}),
                             schema::field("bits_to_trip", &Evidence::bits_to_trip, "log2 of the threshold.", {.digits = 4}),
                             schema::field("stable_events", &Evidence::stable_events, "Its events on stable."),
                             schema::field("canary_events", &Evidence::canary_events, "Its events on the canary."),
                             schema::field("dry_run", &Evidence::dry_run, "It only reports the verdict that it would have given."));
/// For a stored verdict.
inline constexpr auto kExactEvidence = schema::with_every_digit(kEvidence);

inline constexpr auto kCertificate = schema::object<Certificate>(
    "Certificate", "Proof that the current step waits for.",
    schema::field("margin", &Certificate::margin, "The quantity that is no worse, and its margin: errors +1.0 %."),
    schema::field("progress", &Certificate::progress, "0 to 1; 1: certified.", {.digits = 4}));

inline constexpr auto kEvent = schema::object<DecidingEvent>(
    "Event", "An event that moved the leading guard.", schema::field("at_ms", &DecidingEvent::at, "Since the rollout began."),
    schema::field("arm", &DecidingEvent::arm, "The version that answered."),
    schema::field("share", &DecidingEvent::share, "The canary's share of such answers that chance alone explains. Of a sample: its value.",
                  {.digits = 4}),
    schema::field("units", &DecidingEvent::units, "Pieces of evidence that it counts for.", {.digits = 4}),
    schema::field("bits", &DecidingEvent::bits, "log2 of the guard's e-value after it.", {.digits = 4}));

inline constexpr auto kResource = schema::object<ResourceLine>(
    "Resource", "What one endpoint uses of a resource, on average, and how that grows.",
    schema::field("guard", &ResourceLine::guard, "res_memory, res_descriptors, res_gpu or res_cpu."),
    schema::field("stable", &ResourceLine::stable, "Bytes or descriptors; of res_cpu seconds of CPU for an answer. null: not known.",
                  {.digits = 6}),
    schema::field("canary", &ResourceLine::canary, "The same of the canary.", {.digits = 6}),
    schema::field("growth", &ResourceLine::growth, "Of the canary, a minute; of res_cpu how many times stable's cost. null: not known yet.",
                  {.digits = 4}),
    schema::field("growth_least", &ResourceLine::growth_least, "Its lower bound at 99.9 %.", {.digits = 4}),
    schema::field("seconds_left", &ResourceLine::seconds_left,
                  "Until the canary meets its limit, or has doubled, if it grows on like this. null: it does not grow.", {.digits = 4}),
    schema::field("note", &ResourceLine::note, "Why it is not judged; else empty."));

inline constexpr auto kDryRunVerdict = schema::object<DryRunTrip>("DryRunVerdict", "A guard under dryRun that would have rolled back.",
                                                                  schema::field("at_ms", &DryRunTrip::at, "Since the rollout began."),
                                                                  schema::field("guard", &DryRunTrip::guard, "Its name."),
                                                                  schema::field("reason", &DryRunTrip::reason, "A sentence for users."));

}  // namespace serin::rollout
