// gates.h: Reduces a rollout to one word, for Argo's `web` metric and Flagger's gates.
//
//   metrics: [{name: serin, successCondition: "result == 'healthy' || result == 'promoted'", failureCondition: "result == 'rolled_back'",
//              provider: {web: {url: "http://router:8081/v1/rollouts/digits/verdict", jsonPath: "{$.verdict}"}}}]
//   webhooks: [{name: serin, type: confirm-promotion, url: "http://router:8081/v1/rollouts/digits/gates/confirm-promotion"}]
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "router/control/controller.h"
#include "runtime/base/schema.h"

namespace serin::router {

inline constexpr std::string_view kStandings[] = {"healthy", "insufficient_data", "rolled_back", "promoted"};

struct Standing {
  std::string_view verdict;
  std::string service, rollout, reason;
};
inline constexpr auto kStanding = schema::object<Standing>(
    "Word", "A rollout in one word.", schema::field("verdict", &Standing::verdict, "The word.", {.words = kStandings}),
    schema::field("service", &Standing::service, "Its name."),
    schema::field("rollout", &Standing::rollout, "Its id; empty: there never was one."),
    schema::field("reason", &Standing::reason, "A sentence for users."));

/// One of kStandings.
std::string_view standing_of(const ServiceStatus& status);
std::string standing_json(const ServiceStatus& status);
/// Whether Flagger's webhook of that type is answered with yes; nothing: unknown type.
std::optional<bool> gate_opens(std::string_view type, std::string_view standing);

}  // namespace serin::router
