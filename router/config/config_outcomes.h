// config_outcomes.h: Reads `outcomes:` of a service in router.yaml.
#pragma once

#include <cstddef>
#include <vector>

#include "router/config/config.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::router {

inline constexpr size_t kMostCompared = 48;   ///< versions of a service with outcomes
inline constexpr size_t kLongestClass = 256;  ///< bytes of a class that is a text

Result<std::vector<MetricConfig>> read_outcomes(const config::Node& list, const std::vector<VersionConfig>& versions);

}  // namespace serin::router
