// packing.h: places the replicas of models on the accelerators and nodes of a fleet: all that can be placed, on the cheapest accelerators.
//
//   const Packing packing = pack(fleet, wanted, solver);
//   for (const Placed& each : packing.placed) ... wanted[each.model], fleet.nodes[each.node] ...
//
// First the most models are placed, then the cost of accelerators that come into use is least. Places that a policy does not prefer cost more.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/planner/fleet.h"
#include "runtime/planner/solver.h"
#include "runtime/planner/wanted.h"

namespace serin::planner {

struct Packing {
  std::vector<Placed> placed;
  std::vector<std::pair<size_t, std::string>> not_placed;  ///< a model, and which resource it lacks, by how much, and what would help
  std::string solver;                                      ///< "CBC 2.10.8"; empty: first fit alone
  std::string why_no_solver;
  double seconds = 0;
  double cost = 0;         ///< of accelerators that come into use, an hour's or their gigabytes, and of places that are not preferred
  double least_cost = 0;   ///< no packing of these models costs less; 0 without a solver
  size_t most_models = 0;  ///< no packing places more
  bool priced = false;

  /// How far the cost may be from the best, from 0 to 1.
  double gap() const { return cost > 0 && least_cost < cost ? (cost - least_cost) / cost : 0; }
};

/// `solver`: null, or one that fails, leaves what first fit found.
Packing pack(const Fleet& fleet, const std::vector<WantedModel>& wanted, const Solver* solver);

/// The part of one accelerator that is taken, after some were placed.
struct CardUse {
  double memory = 0;  ///< bytes
  double time = 0;    ///< share
  bool in_use = false;
};
CardUse use_of_card(const Fleet& fleet, const std::vector<WantedModel>& wanted, const std::vector<Placed>& placed, size_t node,
                    size_t card);

/// The part of the accelerators in use that is taken, after some were placed.
struct FleetUse {
  size_t in_use = 0, all = 0;
  double memory = 0, time = 0;  ///< shares, means over those in use
  size_t models = 0;            ///< that have all of their replicas
};
FleetUse use_of(const Fleet& fleet, const std::vector<WantedModel>& wanted, const std::vector<Placed>& placed);

/// One accelerator for each replica, as without packing.
std::vector<Placed> one_each(const Fleet& fleet, const std::vector<WantedModel>& wanted);
/// The first place with room, large models first, used accelerators before unused ones.
std::vector<Placed> first_fit(const Fleet& fleet, const std::vector<WantedModel>& wanted);

/// Which resource is short for a model that was not placed, by how much, and what would help.
std::string why_not_placed(const Fleet& fleet, const std::vector<WantedModel>& wanted, size_t model, const std::vector<Placed>& placed);

}  // namespace serin::planner
