// plan_fleet_load.h: the load of a fleet's accelerators, from a Prometheus server that scrapes NVIDIA's exporter of DCGM (`--load`).
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/cli/tools/prometheus_source.h"
#include "runtime/planner/catalogue.h"
#include "runtime/planner/fleet.h"

namespace serin::cli {

/// Busy time is the mean of the window, memory the most of it. `address` as PrometheusSource::open has it. The notes of the fleet say which load
/// is measured. kUnavailable: there is no answer, or no series of a card; the message names the query.
Status measure_load(const std::string& address, const PrometheusFlags& flags, const planner::Catalogue& catalogue, planner::Fleet& fleet);

}  // namespace serin::cli
