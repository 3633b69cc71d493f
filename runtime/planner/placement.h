// placement.h: models on a device or in a memory: whether they fit, and how fast they would be there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/catalogue.h"
#include "runtime/planner/fit.h"
#include "runtime/planner/latency.h"

namespace serin::planner {

struct PlacementQuestion {
  std::string device;          ///< a name of the catalogue; empty: none
  std::string precision;       ///< of the device; empty: that of each model
  std::optional<size_t> room;  ///< bytes that may be taken; default: those of the device, if it has some
};

struct Placement {
  std::optional<Device> device;
  std::string precision = "fp32";
  std::optional<Fit> fit;                       ///< none: neither a memory nor a card was named
  std::string where;                            ///< the place in messages
  std::vector<std::vector<Latency>> latencies;  ///< for each model, for each bucket; empty without a device
  std::vector<Roof> roofs;                      ///< for each model
  std::string resources;                        ///< YAML for a container
};

Result<Placement> place(const Planner& planner, const std::vector<std::string>& places, const Question& question, const Answer& answer,
                        const PlacementQuestion& wanted, const Catalogue& catalogue);

}  // namespace serin::planner
