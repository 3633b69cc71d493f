// status_json.cc: writes the admin API's answers as JSON. The field names are a contract with pipelines: fields are added, never changed.

#include "router/view/status_json.h"

#include <fmt/format.h>

#include <cmath>

#include "router/view/history_json.h"
#include "runtime/net/http.h"

namespace serin::router {
namespace {

using net::json_quote;

double finite(double value) { return std::isfinite(value) ? value : 0; }

template <class List, class Print>
std::string list_json(const List& list, const Print& print) {
  std::string text = "[";
  for (const auto& item : list) text += (text.size() > 1 ? "," : "") + print(item);
  return text + "]";
}

std::string evidence_json(const rollout::Evidence& evidence) {
  return fmt::format(R"({{"guard":{},"bits":{:.4g},"bits_to_trip":{:.4g},"stable_events":{},"canary_events":{},"dry_run":{}}})",
                     json_quote(evidence.guard), finite(evidence.bits), finite(evidence.bits_to_trip), evidence.stable_events,
                     evidence.canary_events, evidence.dry_run);
}

std::string certificate_json(const rollout::Certificate& certificate) {
  return fmt::format(R"({{"margin":{},"progress":{:.4g}}})", json_quote(certificate.margin), finite(certificate.progress));
}

std::string event_json(const rollout::DecidingEvent& event) {
  return fmt::format(R"({{"at_ms":{},"arm":"{}","share":{:.4g},"units":{:.4g},"bits":{:.4g}}})", event.at.count(),
                     event.arm == rollout::Arm::kCanary ? "canary" : "stable", finite(event.share), finite(event.units),
                     finite(event.bits));
}

std::string dry_run_json(const rollout::DryRunTrip& trip) {
  return fmt::format(R"({{"at_ms":{},"guard":{},"reason":{}}})", trip.at.count(), json_quote(trip.guard), json_quote(trip.reason));
}

std::string example_json(const rollout::Disagreement& example) {
  if (!example.difference) return fmt::format(R"({{"at_ms":{},"form":true}})", example.at.count());
  const rollout::Difference& difference = *example.difference;
  return fmt::format(
      R"({{"at_ms":{},"stable_label":{},"canary_label":{},"stable_score":{:.6g},"canary_score":{:.6g},"absolute":{:.6g},"relative":{:.6g}}})",
      example.at.count(), difference.stable_label, difference.canary_label, finite(difference.stable_score),
      finite(difference.stable_score + difference.score), finite(difference.absolute), finite(difference.relative));
}

std::string shadow_json(const rollout::ShadowSummary& shadow) {
  return fmt::format(
      R"({{"compared":{},"mismatches":{},"labels":{},"largest_absolute":{:.6g},"largest_relative":{:.6g},"mean_score":{:.6g},"examples":{}}})",
      shadow.compared, shadow.mismatches, shadow.labels, finite(shadow.largest_absolute), finite(shadow.largest_relative),
      finite(shadow.mean_score), list_json(shadow.examples, example_json));
}

/// "12.345", or nothing known.
std::string or_null(const std::optional<double>& value) { return value ? fmt::format("{:.3f}", finite(*value)) : "null"; }

double milliseconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

std::string answers_json(const AnswerSummary& answers) {
  return fmt::format(R"({{"seconds":{:.4g},"answers":{},"failures":{},"p50_ms":{:.4g},"p90_ms":{:.4g},"p99_ms":{:.4g}}})", answers.seconds,
                     answers.answers, answers.failures, milliseconds(answers.p50), milliseconds(answers.p90), milliseconds(answers.p99));
}

std::string rollout_json(const ServiceStatus& status) {
  const rollout::Report& report = *status.rollout;
  const rollout::State& s = report.state;
  const std::string next = status.next_verdict ? fmt::format(R"({{"guard":{},"seconds":{:.1f}}})", json_quote(status.next_verdict->guard),
                                                             status.next_verdict->seconds)
                                               : "null";
  return fmt::format(
      R"({{"id":{},"stable":{},"canary":{},"phase":"{}","step":{},"steps":{},"weight":{},"weight_ppm":{},"shadow_ppm":{},"cause":{},"reason":{},)"
      R"("note":{},"seconds":{:.3f},"step_seconds":{:.3f},"step_eta_seconds":{},"next_verdict":{},"answers":{{"stable":{},"canary":{},"shadow":{},"step_canary":{}}},"evidence":{},"certificates":{},)"
      R"("leading_guard":{},"events":{},"dry_run":{},"shadow":{}}})",
      json_quote(s.id), json_quote(s.stable), json_quote(s.canary), rollout::phase_name(s.phase), s.step, status.rollout_steps,
      percent(s.weight_ppm), s.weight_ppm, s.shadow_ppm, json_quote(s.cause), json_quote(s.reason), json_quote(report.note),
      finite(status.rollout_seconds), finite(report.step_seconds), or_null(report.step_eta_seconds), next, report.stable_answers,
      report.canary_answers, report.shadow_answers, report.step_canary_answers, list_json(report.evidence, evidence_json),
      list_json(report.certificates, certificate_json), json_quote(report.leading_guard), list_json(report.events, event_json),
      list_json(report.dry_run, dry_run_json), shadow_json(report.shadow));
}

std::string replicas_json(const ReplicasStatus& replicas) {
  const auto print = [&](const store::Member& member) {
    return fmt::format(R"({{"name":{},"admin":{},"leads":{}}})", json_quote(member.id), json_quote(member.admin),
                       member.id == replicas.leader);
  };
  return fmt::format(R"({{"self":{},"leader":{},"store_reachable":{},"behind_seconds":{:.3f},"untold_verdicts":{},"alive":{}}})",
                     json_quote(replicas.self), json_quote(replicas.leader), replicas.reachable, finite(replicas.behind_seconds),
                     replicas.untold, list_json(replicas.members, print));
}

}  // namespace

std::string status_json(const ServiceStatus& status) {
  const std::string rollout = status.rollout ? rollout_json(status) : "null";
  const std::string warm =
      status.warm ? fmt::format(R"({{"version":{},"seconds":{:.1f}}})", json_quote(status.warm->version), status.warm->seconds) : "null";
  const std::string replicas = status.replicas ? R"(,"replicas":)" + replicas_json(*status.replicas) : "";
  return fmt::format(R"({{"service":{},"stable":{},"epoch":{},"warm":{},"recent":{{"stable":{},"canary":{}}},"rollout":{}{}}})",
                     json_quote(status.service), json_quote(status.stable), status.epoch, warm, answers_json(status.recent_stable),
                     answers_json(status.recent_canary), rollout, replicas);
}

/// By columns: 600 objects of the same twelve names would be four times as long.
std::string timeline_json(const std::string& service, const Timeline& timeline) {
  using Point = Timeline::Point;
  const auto column = [&](const auto& print) { return list_json(timeline.points(), print); };
  const auto arm = [&](AnswerSummary Point::* of) {
    const auto quantile = [&](std::chrono::nanoseconds AnswerSummary::* which) {
      return column([&](const Point& point) { return fmt::format("{:.4g}", milliseconds(point.*of.*which)); });
    };
    return fmt::format(R"({{"answers":{},"failures":{},"p50_ms":{},"p90_ms":{},"p99_ms":{}}})",
                       column([&](const Point& point) { return std::to_string((point.*of).answers); }),
                       column([&](const Point& point) { return std::to_string((point.*of).failures); }), quantile(&AnswerSummary::p50),
                       quantile(&AnswerSummary::p90), quantile(&AnswerSummary::p99));
  };
  const auto guard = [](const auto& named) {
    return fmt::format(R"({{"guard":{},"bits_to_trip":{:.4g},"bits":{}}})", json_quote(named.first), finite(named.second.bits_to_trip),
                       list_json(named.second.bits, [](float bits) { return fmt::format("{:.3g}", finite(bits)); }));
  };
  return fmt::format(R"({{"service":{},"at_ms":{},"weight_ppm":{},"shadow_ppm":{},"stable":{},"canary":{},"evidence":{}}})",
                     json_quote(service), column([](const Point& point) { return std::to_string(point.at.count()); }),
                     column([](const Point& point) { return std::to_string(point.weight_ppm); }),
                     column([](const Point& point) { return std::to_string(point.shadow_ppm); }), arm(&Point::stable), arm(&Point::canary),
                     list_json(timeline.guards(), guard));
}

std::string history_json(const std::string& service, const std::vector<HistoryEntry>& entries) {
  return fmt::format(R"({{"service":{},"history":{}}})", json_quote(service), list_json(entries, history_entry_json));
}

std::string service_json(const ServiceConfig& config, const ServiceStatus& status, const Controller& controller, size_t index) {
  size_t version = 0;
  const auto print = [&](const VersionConfig& entry) {
    const uint32_t ppm = controller.share_of(index, version);
    const auto count = controller.endpoint_count(index, version);
    ++version;
    return fmt::format(R"({{"name":{},"weight":{},"weight_ppm":{},"endpoints":{},"healthy":{}}})", json_quote(entry.name), percent(ppm),
                       ppm, count ? count->all : entry.endpoints.size(), count ? std::to_string(count->healthy) : "null");
  };
  return fmt::format(R"({{"name":{},"stable":{},"epoch":{},"versions":{}}})", json_quote(config.name), json_quote(status.stable),
                     status.epoch, list_json(config.versions, print));
}

}  // namespace serin::router
