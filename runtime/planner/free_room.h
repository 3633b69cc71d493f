// free_room.h: what is left of a fleet while it is filled: the rules of a valid placement.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/planner/wanted.h"

namespace serin::planner {

/// Holds references to the fleet and to the models.
class FreeRoom {
 public:
  FreeRoom(const Fleet& fleet, const std::vector<WantedModel>& wanted);
  /// Replicas that fit there, at most `most`. `accelerator`: of the node; none: its CPU.
  int fits(size_t model, size_t option, size_t node, std::optional<size_t> accelerator, int most) const;
  /// With the quotas of tenants; fits() said that there is room.
  void take(const Placed& placed);
  void give_back(const Placed& placed);
  bool in_use(size_t node, size_t accelerator) const { return left_[node].accelerators[accelerator].in_use; }

  struct Card {
    double memory = 0, time = 0;
    bool in_use = false;
  };
  struct Left {
    double cores = 0, memory = 0;
    double pods = std::numeric_limits<double>::infinity();
    std::vector<Card> accelerators;
  };
  const Left& at(size_t node) const { return left_[node]; }
  /// Of that tenant; null: it has none.
  const Quota* quota(const std::string& tenant) const;

 private:
  void change(const Placed& placed, double sign);

  const Fleet& fleet_;
  const std::vector<WantedModel>& wanted_;
  std::vector<Left> left_;
  std::map<std::string, Quota> quotas_;
};

}  // namespace serin::planner
