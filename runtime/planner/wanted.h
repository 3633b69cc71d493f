// wanted.h: what a packing is made of: models with the ways in which they may run, and the places of their replicas.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/fleet.h"

namespace serin::planner {

/// A kind of accelerator that a model may run on, and what one replica takes there.
struct Option {
  std::string kind;  ///< Accelerator::name; empty: the CPU of a node
  int replicas = 1;
  double device_memory = 0;  ///< bytes
  double busy = 0;           ///< share of the accelerator's time
  double cores = 0, memory = 0;
  double dislike = 0;  ///< 0: preferred. A replica there counts as so many of the most expensive accelerators more
  std::string how;     ///< "fp16, batches up to 8"
};

struct WantedModel {
  std::string name, tenant;
  std::map<std::string, std::string> on;
  std::vector<Option> options;
  std::string no_option;  ///< why there is none
};

struct Placed {
  size_t model = 0, option = 0;
  size_t node = 0;
  std::optional<size_t> accelerator;  ///< of the node; none: its CPU
  int replicas = 0;
};

/// Price of an accelerator, or its gigabytes.
double cost_of(const Accelerator& accelerator, bool priced);
/// Whether all accelerators have a price.
bool has_prices(const Fleet& fleet);
bool has_labels(const FleetNode& node, const std::map<std::string, std::string>& labels);

}  // namespace serin::planner
