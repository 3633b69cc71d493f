#include "runtime/planner/fleet.h"

namespace serin::planner {

std::map<std::string, std::string> Fleet::kinds() const {
  std::map<std::string, std::string> kinds;
  for (const FleetNode& node : nodes)
    for (const Accelerator& each : node.accelerators) kinds.emplace(each.name, each.card);
  return kinds;
}

}  // namespace serin::planner
