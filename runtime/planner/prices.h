// prices.h: a file of prices of the user, since no program knows those of a cloud.
//
//   currency: USD
//   source: "list prices, region eu-1, 2026-11"
//   hour: {NVIDIA L4: 0.71, A100-SXM4-40GB: 2.93, core: 0.031, gigabyte: 0.0041}
#pragma once

#include <map>
#include <string>

#include "runtime/planner/catalogue.h"

namespace serin::planner {

struct Prices {
  std::string currency, source;
  std::map<std::string, double> devices;  ///< of an hour, by the catalogue's name; a slice has its part of the card's memory
  double core = 0, gigabyte = 0;          ///< of an hour; 0: included in the device, or free

  bool knows(const Device* device) const;
  /// Of an hour. `device`: null for the CPU alone. `share`: of the device, for a slice.
  double hour(const Device* device, double share, int cores, double bytes) const;
};

/// Errors name file, line and key: a device that the catalogue lacks, a price that is negative.
Result<Prices> read_prices(const std::string& path, const Catalogue& catalogue);

}  // namespace serin::planner
