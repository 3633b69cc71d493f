#include "router/admin/gates.h"

#include "runtime/base/schema_json.h"

namespace serin::router {

std::string_view standing_of(const ServiceStatus& status) {
  if (!status.rollout) return "insufficient_data";
  const rollout::Report& report = *status.rollout;
  if (report.state.phase == rollout::Phase::kRolledBack) return "rolled_back";
  if (report.state.phase == rollout::Phase::kSucceeded) return "promoted";
  const bool unseen = report.canary_answers + report.shadow_answers == 0;
  return unseen || report.state.phase == rollout::Phase::kInconclusive ? "insufficient_data" : "healthy";
}

std::string standing_json(const ServiceStatus& status) {
  const rollout::State state = status.rollout ? status.rollout->state : rollout::State{};
  return schema::to_json(kStanding,
                         {.verdict = standing_of(status), .service = status.service, .rollout = state.id, .reason = state.reason});
}

std::optional<bool> gate_opens(std::string_view type, std::string_view standing) {
  const bool good = standing == "healthy" || standing == "promoted";
  if (type == "confirm-rollout") return standing != "rolled_back";
  if (type == "rollout" || type == "confirm-traffic-increase" || type == "confirm-promotion") return good;
  if (type == "rollback") return standing == "rolled_back";
  if (type == "pre-rollout" || type == "post-rollout" || type == "event") return true;
  return std::nullopt;
}

}  // namespace serin::router
