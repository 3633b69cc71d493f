#include "runtime/planner/wanted.h"

#include <algorithm>

namespace serin::planner {

bool has_prices(const Fleet& fleet) {
  return std::ranges::all_of(fleet.nodes, [](const FleetNode& node) {
    return std::ranges::all_of(node.accelerators, [](const Accelerator& card) { return card.hourly > 0; });
  });
}

double cost_of(const Accelerator& accelerator, bool priced) { return priced ? accelerator.hourly : accelerator.memory / 1e9; }

bool has_labels(const FleetNode& node, const std::map<std::string, std::string>& labels) {
  return std::ranges::all_of(labels, [&](const auto& label) {
    const auto found = node.labels.find(label.first);
    return found != node.labels.end() && found->second == label.second;
  });
}

}  // namespace serin::planner
