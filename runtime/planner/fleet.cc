#include "runtime/planner/fleet.h"

#include <algorithm>

namespace serin::planner {

std::optional<Accelerator> accelerator_of(const Device& card, const std::string& slice, const std::optional<Prices>& prices) {
  Accelerator made{.name = card.name, .card = card.name, .memory = card.usable};
  double share = 1;
  if (!slice.empty()) {
    const auto own = std::ranges::find(card.slices, slice, &Slice::name);
    if (own == card.slices.end()) return std::nullopt;
    share = own->memory / card.memory;
    made.name += " " + slice;
    made.memory = card.usable * share;
  }
  if (prices && prices->knows(&card)) made.hourly = prices->hour(&card, share, 0, 0);
  return made;
}

std::map<std::string, std::string> Fleet::kinds() const {
  std::map<std::string, std::string> kinds;
  for (const FleetNode& node : nodes)
    for (const Accelerator& each : node.accelerators) kinds.emplace(each.name, each.card);
  return kinds;
}

}  // namespace serin::planner
