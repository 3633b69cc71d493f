// gates.cc: The words are for tools that act on them by themselves, so each of them is careful. `healthy` needs a step that has passed: one
// good answer shows nothing. Too little traffic is never a reason against a canary.
#include "router/admin/gates.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/view/history.h"
#include "runtime/base/schema_json.h"
#include "runtime/net/target.h"

namespace serin::router {
namespace {

using rollout::Phase;

bool is_certified(const rollout::Report& report) {
  const auto& certificates = report.certificates;
  return !certificates.empty() && std::ranges::all_of(certificates, [](const auto& one) { return one.progress >= 1; });
}

std::string_view standing_of(const rollout::Report& report) {
  const Phase phase = report.state.phase;
  if (phase == Phase::kRolledBack) return "rolled_back";
  if (phase == Phase::kSucceeded) return "promoted";
  const bool passed = report.state.step > 0 || phase == Phase::kPromoting || phase == Phase::kBaking || is_certified(report);
  return passed && phase != Phase::kInconclusive ? "healthy" : "insufficient_data";
}

bool is_named(const std::string& version, std::string_view asked) { return version == asked || net::escaped(version) == asked; }

}  // namespace

Standing stand(const ServiceStatus& status) {
  Standing standing{.verdict = "insufficient_data", .service = status.service, .stable = status.stable};
  if (!status.rollout) {
    standing.reason = "there is no rollout";
    return standing;
  }
  const rollout::State& state = status.rollout->state;
  standing.verdict = standing_of(*status.rollout);
  standing.rollout = state.id;
  standing.reason = state.reason;
  standing.canary = state.canary;
  standing.weight = view::percent(state.weight_ppm);
  standing.certified = is_certified(*status.rollout);
  standing.last_step = static_cast<size_t>(state.step) + 1 >= status.rollout_steps;
  return standing;
}

Standing stand(const std::vector<ServiceStatus>& tracks, std::string_view version) {
  const ServiceStatus& first = tracks.front();
  const bool is_stable = is_named(first.stable, version);
  const ServiceStatus* ended = nullptr;
  for (const ServiceStatus& status : tracks) {
    if (!status.rollout || !is_named(status.rollout->state.canary, version)) continue;
    const Phase phase = status.rollout->state.phase;
    if (!rollout::is_over(phase)) return stand(status);
    if (phase == Phase::kSucceeded && !is_stable) continue;  // another version has become stable since
    if (ended == nullptr || phase == Phase::kRolledBack) ended = &status;
  }
  if (ended != nullptr && (!is_stable || ended->rollout->state.phase == Phase::kSucceeded)) return stand(*ended);
  return {.verdict = is_stable ? "promoted" : "insufficient_data",
          .service = first.service,
          .reason = is_stable ? "it is the stable version" : fmt::format("there is no rollout of version '{}'", version),
          .stable = first.stable};
}

std::string standing_json(const Standing& standing) { return schema::to_json(kStanding, standing); }

std::optional<bool> gate_opens(std::string_view type, const Standing& standing) {
  const bool rolled_back = standing.verdict == "rolled_back", promoted = standing.verdict == "promoted";
  const bool healthy = standing.verdict == "healthy";
  if (type == "confirm-rollout" || type == "rollout") return !rolled_back;  // a no to `rollout` counts as a failed check
  if (type == "confirm-traffic-increase") return healthy || promoted;
  if (type == "confirm-promotion") return promoted || (healthy && standing.last_step && standing.certified);
  if (type == "rollback") return rolled_back;
  if (type == "pre-rollout" || type == "post-rollout" || type == "event") return true;
  return std::nullopt;
}

}  // namespace serin::router
