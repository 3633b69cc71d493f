// fleet.h: nodes with their accelerators, what already runs on them, and the models that are to be placed (README.md shows a file, which fleet_file.h reads).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/catalogue.h"
#include "runtime/planner/prices.h"
#include "runtime/planner/task.h"

namespace serin::planner {

/// A card of a node, or a slice of one.
struct Accelerator {
  std::string name;                    ///< "NVIDIA L4", "NVIDIA A100-SXM4-40GB 1g.5gb"
  std::string card;                    ///< of the catalogue, also for a slice
  double memory = 0, memory_used = 0;  ///< usable bytes
  double busy = 0;                     ///< share of the time that it already computes
  double hourly = 0;                   ///< its price; 0: none is known

  double free_memory() const { return memory - memory_used; }
  double free_time() const { return 1 - busy; }
  bool in_use() const { return busy > 0 || memory_used > 0; }
};

/// A card, or a slice of one where `slice` is not empty, with its price if one is known. Nothing: the card has no such slice.
std::optional<Accelerator> accelerator_of(const Device& card, const std::string& slice, const std::optional<Prices>& prices);

struct FleetNode {
  std::string name;
  double cores = 0, cores_used = 0;
  double memory = 0, memory_used = 0;  ///< bytes
  std::optional<double> pods;          ///< the most that it runs; none: any number
  double pods_used = 0;
  std::map<std::string, std::string> labels;
  std::vector<Accelerator> accelerators;
};

/// Resources of a replica where no model is named.
struct PlainNeeds {
  double device_memory = 0;  ///< 0: it runs on the CPU
  double busy = 0;           ///< share of a card's time
  double cores = 1, memory = 0;
};

struct FleetModel {
  Task task;  ///< its name, model, policy and demand
  std::optional<PlainNeeds> needs;
  std::optional<int> replicas;
  std::map<std::string, std::string> on;  ///< labels that its nodes must have
};

struct Fleet {
  std::vector<FleetNode> nodes;
  std::vector<FleetModel> models;
  std::map<std::string, Quota> quotas;
  std::optional<Prices> prices;
  double timeout = 60, gap = 0.01;
  std::vector<std::string> notes;  ///< what of a cluster is left out, and why

  /// Different names of accelerators, each with that of the card.
  std::map<std::string, std::string> kinds() const;
};

}  // namespace serin::planner
