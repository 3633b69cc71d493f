// resources.h: What the endpoints of both arms use, as their own metrics say. Plain data, from the router's scrapes.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/observation.h"

namespace serin::rollout {

/// One page of metrics of one endpoint. Nothing: the page does not have it.
struct ResourceSample {
  Arm arm = Arm::kStable;
  uint32_t endpoint = 0;  ///< index within the service
  std::optional<double> memory, descriptors, most_descriptors, gpu, most_gpu;
  std::optional<double> cpu_seconds, started;  ///< both show a restart: one falls, the other one changes
  double requests = 0;                         ///< so far, copies included: the endpoint's own count if it has one, else the router's
  std::optional<double> idle_cpu;              ///< CPU seconds a second, measured while it had no request
};

/// Whether both may be the start of one process. Some exporters subtract its age from the time of day.
inline bool same_start(const std::optional<double>& a, const std::optional<double>& b) {
  constexpr double kSeconds = 2;
  return a.has_value() == b.has_value() && (!a || std::abs(*a - *b) < kSeconds);
}

/// The pages of all healthy endpoints, asked at the same time.
struct ResourceRound {
  uint64_t epoch = 0;
  std::vector<ResourceSample> samples;
  uint32_t asked_stable = 0, asked_canary = 0;  ///< more than there are samples of: an endpoint did not answer
  std::optional<uint32_t> weight_ppm;           ///< the canary's in force; nothing: that of the rollout
  bool one_process = false;                     ///< an endpoint of each arm is in the same process: nothing can be compared
};

/// One resource, for users.
struct ResourceLine {
  std::string guard;                           ///< "res_memory"
  std::optional<double> stable, canary;        ///< bytes or descriptors of one endpoint, or CPU seconds for one answer
  std::optional<double> growth, growth_least;  ///< of the canary, a minute; of CPU the ratio to stable, and its lower bound
  std::optional<double> seconds_left;          ///< until the limit, or until it has doubled, at that pace
  std::string note;                            ///< why it is not judged; else empty
};

}  // namespace serin::rollout
