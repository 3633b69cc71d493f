// fleet_load.h: gives the accelerators of a fleet the load that was measured on their cards.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/catalogue.h"
#include "runtime/planner/fleet.h"

namespace serin::planner {

/// A card, or an instance of a MIG slice, as NVIDIA's exporter of DCGM reports it.
struct MeasuredCard {
  std::string node;             ///< its host
  std::string gpu;              ///< "3", of an instance "3/7"
  std::string model;            ///< as the driver names the card
  std::string slice;            ///< "1g.5gb"; empty: the whole card
  bool of_pod = false;          ///< a pod has requested it
  std::optional<double> busy;   ///< share of the time; nothing: not reported
  std::optional<double> bytes;  ///< of its memory that are in use; nothing: not reported
};

/// Cards are matched by node (its name, or its label kubernetes.io/hostname), card and slice. Accelerators that are in use as a
/// whole stay so; as many cards are left out, those of pods first. The others are given in order. Values outside of what a card can have are limited to it. Notes of the
/// fleet name cards without a place and accelerators without a card. Returns the number of accelerators that have a measured load now.
size_t apply_load(std::vector<MeasuredCard> cards, const Catalogue& catalogue, Fleet& fleet);

}  // namespace serin::planner
