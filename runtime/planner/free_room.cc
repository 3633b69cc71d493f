#include "runtime/planner/free_room.h"

#include <algorithm>
#include <cmath>

namespace serin::planner {
namespace {

constexpr double kRounding = 1e-9;  // sums of shares may miss 1 by their last bits

int times(double room, double each, int most) {
  if (each <= 0) return most;
  return static_cast<int>(std::clamp(std::floor(room / each + kRounding), 0.0, static_cast<double>(most)));
}

}  // namespace

FreeRoom::FreeRoom(const Fleet& fleet, const std::vector<WantedModel>& wanted) : fleet_(fleet), wanted_(wanted), quotas_(fleet.quotas) {
  for (const FleetNode& node : fleet.nodes) {
    Left left;
    left.cores = node.cores - node.cores_used;
    left.memory = node.memory - node.memory_used;
    if (node.pods) left.pods = *node.pods - node.pods_used;
    for (const Accelerator& card : node.accelerators) left.accelerators.push_back({card.free_memory(), card.free_time(), card.in_use()});
    left_.push_back(std::move(left));
  }
}

const Quota* FreeRoom::quota(const std::string& tenant) const {
  const auto found = quotas_.find(tenant);
  return found == quotas_.end() ? nullptr : &found->second;
}

int FreeRoom::fits(size_t model, size_t option, size_t node, std::optional<size_t> accelerator, int most) const {
  const WantedModel& wanted = wanted_[model];
  const Option& way = wanted.options[option];
  const FleetNode& place = fleet_.nodes[node];
  if (!has_labels(place, wanted.on)) return 0;
  if (accelerator ? place.accelerators[*accelerator].name != way.kind : !way.kind.empty()) return 0;
  const Left& left = left_[node];
  most = std::min(times(left.cores, way.cores, most), times(left.memory, way.memory, most));
  most = times(left.pods, 1, most);
  if (accelerator) {
    const Card& card = left.accelerators[*accelerator];
    most = std::min(times(card.memory, way.device_memory, most), times(card.time, way.busy, most));
  }
  const Quota* const limit = quota(wanted.tenant);
  if (!limit) return most;
  if (limit->devices && accelerator) most = std::min(most, std::max(0, *limit->devices));
  if (limit->cores) most = times(*limit->cores, way.cores, most);
  if (limit->memory) most = times(*limit->memory, way.memory, most);
  return most;
}

void FreeRoom::take(const Placed& placed) { change(placed, 1); }
void FreeRoom::give_back(const Placed& placed) { change(placed, -1); }

void FreeRoom::change(const Placed& placed, double sign) {
  const WantedModel& wanted = wanted_[placed.model];
  const Option& way = wanted.options[placed.option];
  const double count = sign * placed.replicas;
  Left& left = left_[placed.node];
  left.cores -= count * way.cores;
  left.memory -= count * way.memory;
  left.pods -= count;
  if (placed.accelerator) {
    Card& card = left.accelerators[*placed.accelerator];
    card.memory -= count * way.device_memory;
    card.time -= count * way.busy;
    if (sign > 0) card.in_use = true;
  }
  const auto found = quotas_.find(wanted.tenant);
  if (found == quotas_.end()) return;
  Quota& quota = found->second;
  if (quota.devices && placed.accelerator) *quota.devices -= static_cast<int>(count);
  if (quota.cores) *quota.cores -= count * way.cores;
  if (quota.memory) *quota.memory -= count * way.memory;
}

}  // namespace serin::planner
