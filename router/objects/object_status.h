// object_status.h: The status of a Rollout object: what the router writes under `status` (deploy/kubernetes/crds/rollouts.serin.dev.yaml).
//
// The conditions follow kstatus (https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus), so that `kubectl wait`, Flux and Argo CD
// understand them: Ready ends well, Stalled ends badly, Reconciling is under way. Accepted: the specification is valid for this router.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "router/control/service_status.h"

namespace serin::router {

/// The result of one object.
struct ObjectOutcome {
  int64_t generation = 0;
  std::string service, canary, revision;  ///< as the object has them
  std::optional<ServiceStatus> status;    ///< of the track on which its rollout runs or ran; nothing: it has none
  bool accepted = true;
  bool blocked = false;         ///< its canary was rolled back before
  bool is_stable = false;       ///< its canary is stable without a rollout
  std::string reason, message;  ///< one word and a sentence; empty: they follow from `status`
};

/// `before`: the present status of the object, from which the times of conditions that did not change are kept. `now`: RFC 3339.
boost::json::object object_status(const ObjectOutcome& outcome, const boost::json::object& before, const std::string& now);
/// The part of a status whose change is written at once. The rest, such as evidence, is written every few seconds.
std::string what_matters(const boost::json::object& status);

}  // namespace serin::router
