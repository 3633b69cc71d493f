// fleet_report.h: a packing as tables, and as data of the schema "serin.fleet/1" (README.md).
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/packing.h"

namespace serin::planner {

std::string print_fleet_text(const Fleet& fleet, const std::vector<WantedModel>& wanted, const Packing& packing);
std::string print_fleet_json(const Fleet& fleet, const std::vector<WantedModel>& wanted, const Packing& packing);

}  // namespace serin::planner
