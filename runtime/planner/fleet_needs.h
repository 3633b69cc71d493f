// fleet_needs.h: what the models of a fleet file take on each kind of accelerator that the fleet has: by their plans, or as the file says.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/calibration.h"
#include "runtime/planner/packing.h"
#include "runtime/planner/planner.h"

namespace serin::planner {

/// `calibration`: of this machine, for models on CPUs; null: none. Errors name the model and its file. A model that can run nowhere has no options.
Result<std::vector<WantedModel>> fleet_needs(const Planner& planner, const Fleet& fleet, const Calibration* calibration,
                                             const Catalogue& catalogue);

}  // namespace serin::planner
