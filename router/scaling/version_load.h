// version_load.h: the load of one version of a service, as its autoscaler needs it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace serin::router {

struct VersionLoad {
  std::string service, version;
  int64_t in_flight = 0;           ///< requests that its endpoints have not answered yet, copies included
  double requests_per_second = 0;  ///< sent to its endpoints, mean of the last ten seconds
  int64_t unserved = 0;            ///< requests of the last ten seconds that came while none of its endpoints was healthy
  bool needed = false;             ///< whatever its load: a rollout under way compares it, or traffic may go back to it
};

/// Tells the loads of all versions. Thread-safe.
using LoadSource = std::function<std::vector<VersionLoad>()>;

}  // namespace serin::router
