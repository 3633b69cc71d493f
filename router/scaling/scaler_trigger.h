// scaler_trigger.h: what a trigger of KEDA asks for, as it stands in its `metadata`.
//
//   SERIN_TRY(const auto trigger, ScalerTrigger::read({{"service", "digits"}, {"version", "1"}, {"threshold", "8"}}));
//   SERIN_TRY(const VersionLoad load, trigger.find(loads()));
//   trigger.is_active(load);
#pragma once

#include <map>
#include <string>
#include <vector>

#include "router/scaling/load_metric.h"
#include "runtime/base/result.h"

namespace serin::router {

struct ScalerTrigger {
  std::string service, version;
  const LoadMetric* metric = nullptr;
  double threshold = 0;   ///< of one replica
  double activation = 0;  ///< replicas go from none to one above it

  /// kInvalidArgument: the message names the key.
  static Result<ScalerTrigger> read(const std::map<std::string, std::string>& metadata);
  /// kNotFound: there is no such service or version.
  Result<VersionLoad> find(const std::vector<VersionLoad>& loads) const;
  /// Whether the version must have a replica.
  bool is_active(const VersionLoad& load) const;
};

}  // namespace serin::router
