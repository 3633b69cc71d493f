// gates.h: Reduces a rollout to one word, for Argo's `web` metric and Flagger's webhooks. deploy/neighbours has the objects of both.
//
//   const Standing standing = stand(status);                       // {"verdict": "healthy", ...}
//   const std::optional<bool> go = gate_opens("rollout", standing);
//
// A tool names the version that it deploys. Without the name, the end of the rollout before it would answer. A tool that asks early would
// then promote a version that has not been judged, or remove it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/control/controller.h"
#include "runtime/base/schema.h"

namespace serin::router {

inline constexpr std::string_view kStandings[] = {"healthy", "insufficient_data", "rolled_back", "promoted"};

/// Flagger's types of webhooks that are answered.
inline constexpr std::string_view kGateTypes[] = {"confirm-rollout",   "pre-rollout",  "rollout",  "confirm-traffic-increase",
                                                  "confirm-promotion", "post-rollout", "rollback", "event"};

struct Standing {
  std::string_view verdict;
  std::string service, rollout, reason, stable, canary;
  double weight = 0;
  bool certified = false;
  bool last_step = false;  ///< of the present step; for gates, and not in the answer
};
inline constexpr auto kStanding = schema::object<Standing>(
    "Word", "A rollout in one word.", schema::field("verdict", &Standing::verdict, "The word.", {.words = kStandings}),
    schema::field("service", &Standing::service, "Its name."),
    schema::field("rollout", &Standing::rollout, "Its id; empty: there never was one."),
    schema::field("reason", &Standing::reason, "A sentence for users."),
    schema::field("stable", &Standing::stable, "The version that is stable now."),
    schema::field("canary", &Standing::canary, "The version that is, or was, rolled out; empty: there never was one."),
    schema::field("weight", &Standing::weight, "Of the canary, in percent.", {.least = 0, .most = 100}),
    schema::field("certified", &Standing::certified, "The present step has all the evidence that it asks for."));

Standing stand(const ServiceStatus& status);
/// The rollout of that version, on any track of a service (control/tracks.h); there is at least one track. `version` is the text of a query,
/// with or without escapes.
Standing stand(const std::vector<ServiceStatus>& tracks, std::string_view version);
std::string standing_json(const Standing& standing);
/// Whether Flagger's webhook of that type is answered with yes; nothing: there is no such type.
std::optional<bool> gate_opens(std::string_view type, const Standing& standing);

}  // namespace serin::router
