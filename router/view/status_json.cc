// status_json.cc: copies snapshots of the controller into the structs of this folder, whose descriptions say how they are written.

#include "router/view/status_json.h"

#include <algorithm>
#include <iterator>

#include "router/view/applied.h"
#include "router/view/history.h"
#include "router/view/service_list.h"
#include "router/view/status.h"
#include "router/view/timeline_columns.h"
#include "runtime/base/schema_json.h"

namespace serin::router {
namespace {

template <class List, class Convert>
auto converted(const List& list, const Convert& convert) {
  std::vector<std::decay_t<decltype(convert(*std::begin(list)))>> result;
  result.reserve(list.size());
  std::ranges::transform(list, std::back_inserter(result), convert);
  return result;
}

double in_milliseconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

view::Answers view_answers(const AnswerSummary& answers) {
  return {.seconds = answers.seconds,
          .answers = answers.answers,
          .failures = answers.failures,
          .p50_ms = in_milliseconds(answers.p50),
          .p90_ms = in_milliseconds(answers.p90),
          .p99_ms = in_milliseconds(answers.p99)};
}

view::Disagreement view_disagreement(const rollout::Disagreement& example) {
  if (!example.difference) return {.at = example.at, .form = true};
  const rollout::Difference& difference = *example.difference;
  return {.at = example.at,
          .stable_label = difference.stable_label,
          .canary_label = difference.canary_label,
          .stable_score = difference.stable_score,
          .canary_score = difference.stable_score + difference.score,
          .absolute = difference.absolute,
          .relative = difference.relative};
}

view::Shadow view_shadow(const rollout::ShadowSummary& shadow) {
  return {.compared = shadow.compared,
          .mismatches = shadow.mismatches,
          .labels = shadow.labels,
          .largest_absolute = shadow.largest_absolute,
          .largest_relative = shadow.largest_relative,
          .mean_score = shadow.mean_score,
          .examples = converted(shadow.examples, view_disagreement)};
}

view::Rollout view_rollout(const ServiceStatus& status) {
  const rollout::Report& report = *status.rollout;
  const rollout::State& state = report.state;
  return {.id = state.id,
          .stable = state.stable,
          .canary = state.canary,
          .phase = state.phase,
          .step = state.step,
          .steps = status.rollout_steps,
          .weight = view::percent(state.weight_ppm),
          .weight_ppm = state.weight_ppm,
          .shadow_ppm = state.shadow_ppm,
          .cause = state.cause,
          .reason = state.reason,
          .note = report.note,
          .seconds = status.rollout_seconds,
          .step_seconds = report.step_seconds,
          .step_eta_seconds = report.step_eta_seconds,
          .next_verdict = status.next_verdict,
          .answers = {.stable = report.stable_answers,
                      .canary = report.canary_answers,
                      .shadow = report.shadow_answers,
                      .step_canary = report.step_canary_answers},
          .evidence = report.evidence,
          .certificates = report.certificates,
          .leading_guard = report.leading_guard,
          .events = report.events,
          .dry_run = report.dry_run,
          .shadow = view_shadow(report.shadow),
          .resources = report.resources};
}

view::Replicas view_replicas(const ReplicasStatus& replicas) {
  return {.self = replicas.self,
          .leader = replicas.leader,
          .store_reachable = replicas.reachable,
          .behind_seconds = replicas.behind_seconds,
          .untold_verdicts = replicas.untold,
          .alive = converted(replicas.members, [&](const store::Member& member) {
            return view::Replica{.name = member.id, .admin = member.admin, .leads = member.id == replicas.leader};
          })};
}

view::Status view_status(const ServiceStatus& status) {
  view::Status result{.service = status.service,
                      .stable = status.stable,
                      .epoch = status.epoch,
                      .warm = status.warm,
                      .recent = {view_answers(status.recent_stable), view_answers(status.recent_canary)}};
  if (status.rollout) result.rollout = view_rollout(status);
  if (status.replicas) result.replicas = view_replicas(*status.replicas);
  return result;
}

view::Service view_service(const ServiceConfig& config, const ServiceStatus& status, const Controller& controller, size_t index) {
  view::Service result{.name = config.name, .stable = status.stable, .epoch = status.epoch};
  for (size_t version = 0; version < config.versions.size(); ++version) {
    const uint32_t ppm = controller.share_of(index, version);
    const auto count = controller.endpoint_count(index, version);
    result.versions.push_back({.name = config.versions[version].name,
                               .weight = view::percent(ppm),
                               .weight_ppm = ppm,
                               .endpoints = count ? count->all : config.versions[version].endpoints.size(),
                               .healthy = count ? std::optional<uint64_t>(count->healthy) : std::nullopt});
  }
  return result;
}

view::TimelineArm view_arm(const Timeline& timeline, AnswerSummary Timeline::Point::* of) {
  const auto column = [&](auto AnswerSummary::* which) {
    return converted(timeline.points(), [&](const Timeline::Point& point) { return point.*of.*which; });
  };
  const auto quantile = [&](std::chrono::nanoseconds AnswerSummary::* which) { return converted(column(which), in_milliseconds); };
  return {.answers = column(&AnswerSummary::answers),
          .failures = column(&AnswerSummary::failures),
          .p50_ms = quantile(&AnswerSummary::p50),
          .p90_ms = quantile(&AnswerSummary::p90),
          .p99_ms = quantile(&AnswerSummary::p99)};
}

}  // namespace

std::string status_json(const ServiceStatus& status) { return schema::to_json(view::kStatus, view_status(status)); }

std::string applied_json(const Applied& applied) {
  return schema::to_json(view::kApplied, {.action = std::string(action_name(applied.action)),
                                          .message = applied.message,
                                          .specification_differs = applied.differs,
                                          .current = applied.current,
                                          .wanted = applied.wanted,
                                          .status = view_status(applied.status)});
}

std::string rollouts_json(const std::vector<ServiceStatus>& statuses) {
  view::StatusList list;
  for (const ServiceStatus& status : statuses)
    if (status.rollout) list.rollouts.push_back(view_status(status));
  return schema::to_json(view::kStatusList, list);
}

std::string timeline_json(const std::string& service, const Timeline& timeline) {
  using Point = Timeline::Point;
  const auto column = [&](const auto& value) { return converted(timeline.points(), value); };
  const auto curve = [](const auto& named) {
    return view::EvidenceCurve{.guard = named.first, .bits_to_trip = named.second.bits_to_trip, .bits = named.second.bits};
  };
  return schema::to_json(view::kTimeline, {.service = service,
                                           .at_ms = column([](const Point& point) -> int64_t { return point.at.count(); }),
                                           .weight_ppm = column([](const Point& point) { return point.weight_ppm; }),
                                           .shadow_ppm = column([](const Point& point) { return point.shadow_ppm; }),
                                           .stable = view_arm(timeline, &Point::stable),
                                           .canary = view_arm(timeline, &Point::canary),
                                           .evidence = converted(timeline.guards(), curve)});
}

std::string history_json(const std::string& service, const std::vector<HistoryEntry>& entries) {
  return schema::to_json(view::kHistory, {.service = service, .history = converted(entries, view::view_of)});
}

bool is_shown(const ServiceConfig& config, const ServiceStatus& status) { return config.track_of.empty() || status.rollout.has_value(); }

std::string service_json(const ServiceConfig& config, const ServiceStatus& status, const Controller& controller, size_t index) {
  return schema::to_json(view::kService, view_service(config, status, controller, index));
}

std::string services_json(const std::vector<ServiceConfig>& configs, const std::vector<ServiceStatus>& statuses,
                          const Controller& controller) {
  view::ServiceList list;
  for (size_t i = 0; i < configs.size(); ++i)
    if (is_shown(configs[i], statuses[i])) list.services.push_back(view_service(configs[i], statuses[i], controller, i));
  return schema::to_json(view::kServiceList, list);
}

}  // namespace serin::router
