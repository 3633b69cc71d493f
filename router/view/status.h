// status.h: The status of a service as the admin API has it: plain structs, each described once (runtime/base/schema.h).
//
// The names and the order of the fields are a contract with pipelines: fields are added, never changed. After a change,
// router/README.md says how openapi.json and the types of the dashboard are written anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/control/service_status.h"
#include "router/rollout/report_schema.h"
#include "runtime/base/schema.h"

namespace serin::router::view {

inline constexpr schema::Format kShare = {.least = 0, .most = 1'000'000};
inline constexpr schema::Format kPercent = {.least = 0, .most = 100};
inline constexpr schema::Format kMilliseconds = {.digits = 4};
inline constexpr schema::Format kSeconds = {.decimals = 3};
inline constexpr schema::Format kValue = {.digits = 6};
inline constexpr schema::Format kOptionalValue = {.digits = 6, .may_be_absent = true};

struct Answers {
  double seconds = 0;
  uint64_t answers = 0, failures = 0;
  double p50_ms = 0, p90_ms = 0, p99_ms = 0;
};
inline constexpr auto kAnswers =
    schema::object<Answers>("Answers", "The latest answers of one version.",
                            schema::field("seconds", &Answers::seconds, "The time in which they came.", {.digits = 4}),
                            schema::field("answers", &Answers::answers, "How many."),
                            schema::field("failures", &Answers::failures, "Errors, refusals and missed deadlines among them."),
                            schema::field("p50_ms", &Answers::p50_ms, "Latency of good answers; 0: there is none.", kMilliseconds),
                            schema::field("p90_ms", &Answers::p90_ms, "The same.", kMilliseconds),
                            schema::field("p99_ms", &Answers::p99_ms, "The same.", kMilliseconds));

struct Recent {
  Answers stable, canary;
};
inline constexpr auto kRecent = schema::object<Recent>("Recent", "The answers of the last 10 to 20 seconds.",
                                                       schema::field<kAnswers>("stable", &Recent::stable, "Of the stable version."),
                                                       schema::field<kAnswers>("canary", &Recent::canary, "Of the canary."));

inline constexpr auto kWarm = schema::object<ServiceStatus::Warm>(
    "Warm", "The version that undo brings back.", schema::field("version", &ServiceStatus::Warm::version, "Its name."),
    schema::field("seconds", &ServiceStatus::Warm::seconds, "For how long it is still kept warm.", {.decimals = 1}));

inline constexpr auto kNextVerdict =
    schema::object<NextTrip>("NextVerdict", "The guard that would roll back first, if evidence grows as in the last ten seconds.",
                             schema::field("guard", &NextTrip::guard, "Its name."),
                             schema::field("seconds", &NextTrip::seconds, "From now.", {.decimals = 1, .least = 0}));

struct AnswerCounts {
  uint64_t stable = 0, canary = 0, shadow = 0, step_canary = 0;
};
inline constexpr auto kAnswerCounts =
    schema::object<AnswerCounts>("AnswerCounts", "Answers in this rollout.", schema::field("stable", &AnswerCounts::stable, "Of stable."),
                                 schema::field("canary", &AnswerCounts::canary, "Of the canary."),
                                 schema::field("shadow", &AnswerCounts::shadow, "To mirrored requests."),
                                 schema::field("step_canary", &AnswerCounts::step_canary, "Of the canary, in the current step."));

/// Has `form`, or all of the rest.
struct Disagreement {
  std::chrono::milliseconds at{0};
  std::optional<bool> form;
  std::optional<uint32_t> stable_label, canary_label;
  std::optional<double> stable_score, canary_score, absolute, relative;
};
inline constexpr auto kDisagreement = schema::object<Disagreement>(
    "Disagreement", "A mirrored request whose two answers differ.", schema::field("at_ms", &Disagreement::at, "Since the rollout began."),
    schema::field("form", &Disagreement::form, "true: no output has the same shape in both, so nothing else is known.",
                  {.may_be_absent = true}),
    schema::field("stable_label", &Disagreement::stable_label, "Index of stable's highest score.", kOptionalValue),
    schema::field("canary_label", &Disagreement::canary_label, "Index of the canary's highest score.", kOptionalValue),
    schema::field("stable_score", &Disagreement::stable_score, "Stable's highest score.", kOptionalValue),
    schema::field("canary_score", &Disagreement::canary_score, "The canary's highest score.", kOptionalValue),
    schema::field("absolute", &Disagreement::absolute, "The largest difference.", kOptionalValue),
    schema::field("relative", &Disagreement::relative, "The largest difference as a fraction of stable's value.", kOptionalValue));

struct Shadow {
  uint64_t compared = 0, mismatches = 0, labels = 0;
  double largest_absolute = 0, largest_relative = 0, mean_score = 0;
  std::vector<Disagreement> examples;
};
inline constexpr auto kShadow = schema::object<Shadow>(
    "Shadow", "The answers to mirrored requests, compared with stable's.",
    schema::field("compared", &Shadow::compared, "Pairs of answers."),
    schema::field("mismatches", &Shadow::mismatches, "Pairs that differ."),
    schema::field("labels", &Shadow::labels, "Pairs with different labels."),
    schema::field("largest_absolute", &Shadow::largest_absolute, "The largest difference of all elements.", kValue),
    schema::field("largest_relative", &Shadow::largest_relative, "The same as a fraction of stable's value.", kValue),
    schema::field("mean_score", &Shadow::mean_score, "Mean of the canary's highest score minus stable's.", kValue),
    schema::field<kDisagreement>("examples", &Shadow::examples, "The latest, oldest first, at most 10."));

struct Rollout {
  std::string id, stable, canary;
  rollout::Phase phase = rollout::Phase::kProgressing;
  int step = 0;
  uint64_t steps = 0;
  double weight = 0;
  uint32_t weight_ppm = 0, shadow_ppm = 0;
  std::string cause, reason, note;
  double seconds = 0, step_seconds = 0;
  std::optional<double> step_eta_seconds;
  std::optional<NextTrip> next_verdict;
  AnswerCounts answers;
  std::vector<rollout::Evidence> evidence;
  std::vector<rollout::Certificate> certificates;
  std::string leading_guard;
  std::vector<rollout::DecidingEvent> events;
  std::vector<rollout::DryRunTrip> dry_run;
  Shadow shadow;
  std::vector<rollout::ResourceLine> resources;
};
inline constexpr auto kRollout = schema::object<Rollout>(
    "Rollout", "The current or the last rollout of a service.", schema::field("id", &Rollout::id, "The service and a number: digits-7."),
    schema::field("stable", &Rollout::stable, "The version that was stable when it began."),
    schema::field("canary", &Rollout::canary, "The version that is rolled out."),
    schema::field("phase", &Rollout::phase, "Succeeded and RolledBack are final."),
    schema::field("step", &Rollout::step, "Index of the current step.", {.least = 0}),
    schema::field("steps", &Rollout::steps, "How many there are."),
    schema::field("weight", &Rollout::weight, "Of the canary, in percent.", kPercent),
    schema::field("weight_ppm", &Rollout::weight_ppm, "The same in parts per million.", kShare),
    schema::field("shadow_ppm", &Rollout::shadow_ppm, "Of stable's requests that are mirrored to the canary.", kShare),
    schema::field(
        "cause", &Rollout::cause,
        "While it waits at a gate, that gate (confirm-promotion). Of the verdict: err, rej, dl, hang, shadow, threshold:errors, abort, "
        "promoted ...; empty before it."),
    schema::field("reason", &Rollout::reason, "A sentence for users."),
    schema::field("note", &Rollout::note, "Another reason that the steps wait."),
    schema::field("seconds", &Rollout::seconds, "Since it began, until now or its verdict.", kSeconds),
    schema::field("step_seconds", &Rollout::step_seconds, "Since the step began.", kSeconds),
    schema::field("step_eta_seconds", &Rollout::step_eta_seconds, "Until the step is over, at its pace so far; null: not known.", kSeconds),
    schema::field<kNextVerdict>("next_verdict", &Rollout::next_verdict, "null: no evidence grows."),
    schema::field<kAnswerCounts>("answers", &Rollout::answers, "How many there were."),
    schema::field<rollout::kEvidence>("evidence", &Rollout::evidence, "One for each guard."),
    schema::field<rollout::kCertificate>("certificates", &Rollout::certificates, "Of the current step."),
    schema::field("leading_guard", &Rollout::leading_guard, "The guard that decided or, before a verdict, is nearest to it."),
    schema::field<rollout::kEvent>("events", &Rollout::events, "The latest events of that guard, oldest first, at most 128."),
    schema::field<rollout::kDryRunVerdict>("dry_run", &Rollout::dry_run, "The first verdict of each guard under dryRun."),
    schema::field<kShadow>("shadow", &Rollout::shadow, "The answers to mirrored requests."),
    schema::field<rollout::kResource>("resources", &Rollout::resources,
                                      "What both versions use, by their own metrics. Empty: guard.resources is off."));

struct Replica {
  std::string name, admin;
  bool leads = false;
};
inline constexpr auto kReplica = schema::object<Replica>(
    "Replica", "A router that is alive.", schema::field("name", &Replica::name, "Its name."),
    schema::field("admin", &Replica::admin, "URL of its admin API."), schema::field("leads", &Replica::leads, "It is the leader."));

struct Replicas {
  std::string self, leader;
  bool store_reachable = false;
  double behind_seconds = 0;
  uint64_t untold_verdicts = 0;
  std::vector<Replica> alive;
};
inline constexpr auto kReplicas = schema::object<Replicas>(
    "Replicas", "Only where several routers share the rollouts.", schema::field("self", &Replicas::self, "The router that answers."),
    schema::field("leader", &Replicas::leader, "Empty: no leader is known."),
    schema::field("store_reachable", &Replicas::store_reachable, "The shared store answered the last query."),
    schema::field("behind_seconds", &Replicas::behind_seconds, "Since the last state that a majority agreed on was seen.", kSeconds),
    schema::field("untold_verdicts", &Replicas::untold_verdicts, "Verdicts of this router that are not in the shared store yet."),
    schema::field<kReplica>("alive", &Replicas::alive, "All routers, with this one."));

struct Status {
  std::string service, stable;
  uint64_t epoch = 0;
  std::optional<ServiceStatus::Warm> warm;
  Recent recent;
  std::optional<Rollout> rollout;
  std::optional<Replicas> replicas;
};
inline constexpr auto kStatus = schema::object<Status>(
    "Status", "A service, and its rollout where it ever had one.", schema::field("service", &Status::service, "Its name in router.yaml."),
    schema::field("stable", &Status::stable, "The version that is stable now."),
    schema::field("epoch", &Status::epoch, "Rises with every change; for If-Match."),
    schema::field<kWarm>("warm", &Status::warm,
                         "After a promotion: the version that undo brings back, and for how long it is still kept warm."),
    schema::field<kRecent>("recent", &Status::recent, "How both versions answer now."),
    schema::field<kRollout>("rollout", &Status::rollout, "null: it never had one."),
    schema::field<kReplicas>("replicas", &Status::replicas, "Only where several routers share the rollouts.", {.may_be_absent = true}));

struct StatusList {
  std::vector<Status> rollouts;
};
inline constexpr auto kStatusList =
    schema::object<StatusList>("StatusList", "Every service that has, or had, a rollout.",
                               schema::field<kStatus>("rollouts", &StatusList::rollouts, "One entry for each."));

}  // namespace serin::router::view
