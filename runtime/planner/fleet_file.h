// fleet_file.h: reads a fleet from a file.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/planner/catalogue.h"
#include "runtime/planner/fleet.h"

namespace serin::planner {

/// A fleet file, or a list of Kubernetes objects (fleet_kubernetes.h); a pipe, too, and "-" for standard input. Errors name file, line and key: a device that the
/// catalogue lacks, a load above 100 %, two nodes of a name, a model without a name.
Result<Fleet> read_fleet(const std::string& given, const Catalogue& catalogue);

}  // namespace serin::planner
