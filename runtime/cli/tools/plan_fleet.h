// plan_fleet.h: the part of `serin plan` that places many models on a fleet (`--fleet`).
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/calibration.h"
#include "runtime/planner/catalogue.h"
#include "runtime/planner/planner.h"

namespace serin::cli {

struct FleetFlags {
  std::string file, solver;  ///< the fleet; libserin_packing.so, empty: next to the program
};

/// Prints the answer; `places`: more models, with a replica each. Returns the exit code: 1 if a model was not placed.
Result<int> plan_fleet(const FleetFlags& flags, const std::vector<std::string>& places, const planner::Planner& planner,
                       const planner::Calibration* calibration, const planner::Catalogue& catalogue, bool json);

}  // namespace serin::cli
