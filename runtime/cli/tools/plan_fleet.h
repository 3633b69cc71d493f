// plan_fleet.h: the part of `serin plan` that places many models on a fleet (`--fleet`).
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/tools/prometheus_source.h"
#include "runtime/planner/calibration.h"
#include "runtime/planner/catalogue.h"
#include "runtime/planner/fleet.h"
#include "runtime/planner/planner.h"

namespace serin::cli {

struct FleetFlags {
  std::string file, solver;  ///< the fleet; libserin_packing.so, empty: next to the program
  std::string load;          ///< a Prometheus server that knows the load of the cards; empty: it is as the file says
};

/// The fleet of the file, with the load that its cards have now if flags.load says who knows it. kUnavailable: it does not answer.
Result<planner::Fleet> read_fleet_now(const FleetFlags& flags, const PrometheusFlags& prometheus, const planner::Catalogue& catalogue);

/// Prints the answer; `places`: more models, with a replica each. Returns the exit code: 1 if a model was not placed.
Result<int> plan_fleet(const FleetFlags& flags, planner::Fleet fleet, const std::vector<std::string>& places,
                       const planner::Planner& planner, const planner::Calibration* calibration, const planner::Catalogue& catalogue,
                       bool json);

}  // namespace serin::cli
