// read_rollout.h: A rollout specification for a service of router.yaml: its guard begins with the one of the service.
#pragma once

#include <boost/json/fwd.hpp>

#include "router/config/config.h"
#include "router/rollout/spec.h"
#include "runtime/base/config.h"

namespace serin::router {

/// kNotFound: router.yaml has no such service. Other errors name place and problem.
Result<rollout::Spec> read_rollout(const config::Node& document, const RouterConfig& config);
/// The same for the spec of an object of the Kubernetes API.
Result<rollout::Spec> read_rollout(const boost::json::object& spec, const RouterConfig& config);

}  // namespace serin::router
