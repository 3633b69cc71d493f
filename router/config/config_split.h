// config_split.h: Reads `split:` of a service in router.yaml.
//
//   split: {weights: {"1": 70, "2": 20, "3": 10}, sticky: {header: x-user}}
#pragma once

#include "router/config/config.h"
#include "runtime/base/config.h"

namespace serin::router {

/// kInvalidArgument: a version that the service does not have, or weights that are not 100 % together.
Result<PlainSplit> read_split(const config::Node& node, const ServiceConfig& service);

}  // namespace serin::router
