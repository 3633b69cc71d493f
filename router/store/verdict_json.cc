#include "router/store/verdict_json.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/net/http.h"

namespace serin::store {
namespace {

using net::json_quote;

double finite(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace

std::string verdict_json(const RolloutRecord& rollout, const rollout::VerdictRecord& record, int64_t wall_ms) {
  const rollout::Report& report = rollout.report;
  const rollout::State& state = report.state;
  std::string evidence, dry_run;
  for (const rollout::Evidence& line : report.evidence)
    evidence += fmt::format(R"({}{{"guard":{},"bits":{},"bits_to_trip":{},"stable_events":{},"canary_events":{},"dry_run":{}}})",
                            evidence.empty() ? "" : ",", json_quote(line.guard), finite(line.bits), finite(line.bits_to_trip),
                            line.stable_events, line.canary_events, line.dry_run);
  for (const rollout::DryRunTrip& trip : report.dry_run)
    dry_run += fmt::format(R"({}{{"at_ms":{},"guard":{},"reason":{}}})", dry_run.empty() ? "" : ",", trip.at.count(),
                           json_quote(trip.guard), json_quote(trip.reason));
  return fmt::format(
      R"({{"id":{},"service":{},"stable":{},"canary":{},"phase":"{}","cause":{},"reason":{},"wall_ms":{},"started_wall_ms":{},"seconds":{:.3f},)"
      R"("answers":{{"stable":{},"canary":{},"shadow":{}}},"spec":{},"evidence":[{}],"dry_run":[{}],"record":{}}})",
      json_quote(state.id), json_quote(state.service), json_quote(state.stable), json_quote(state.canary), rollout::phase_name(state.phase),
      json_quote(state.cause), json_quote(state.reason), wall_ms, rollout.started_wall_ms, finite(rollout.seconds), report.stable_answers,
      report.canary_answers, report.shadow_answers, json_quote(rollout.spec), evidence, dry_run,
      record.guard.empty() ? "null" : rollout::print_record(record));
}

}  // namespace serin::store
