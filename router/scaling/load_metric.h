// load_metric.h: the names under which autoscalers ask for the load of a version. They are those of the gauges in /metrics.
#pragma once

#include <span>
#include <string_view>

#include "router/scaling/version_load.h"

namespace serin::router {

struct LoadMetric {
  std::string_view name;
  double (*value)(const VersionLoad&);
  double (*unserved)(const VersionLoad&);  ///< requests that found no endpoint, in the same unit
};

std::span<const LoadMetric> load_metrics();
/// Null: there is no such metric.
const LoadMetric* find_load_metric(std::string_view name);

}  // namespace serin::router
