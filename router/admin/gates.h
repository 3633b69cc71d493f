// gates.h: Reduces a rollout to one word, for Argo's `web` metric and Flagger's gates.
//
//   metrics: [{name: serin, successCondition: "result == 'healthy' || result == 'promoted'", failureCondition: "result == 'rolled_back'",
//              provider: {web: {url: "http://router:8081/v1/rollouts/digits/verdict", jsonPath: "{$.verdict}"}}}]
//   webhooks: [{name: serin, type: confirm-promotion, url: "http://router:8081/v1/rollouts/digits/gates/confirm-promotion"}]
#pragma once

#include <optional>
#include <string_view>

#include "router/control/controller.h"

namespace serin::router {

/// "healthy", "insufficient_data", "rolled_back" or "promoted".
std::string_view standing_of(const ServiceStatus& status);
/// Whether Flagger's webhook of that type is answered with yes; nothing: unknown type.
std::optional<bool> gate_opens(std::string_view type, std::string_view standing);

}  // namespace serin::router
