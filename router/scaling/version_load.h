// version_load.h: the load of one version of a service, as its autoscaler needs it.
#pragma once

#include <cstdint>
#include <string>

namespace serin::router {

struct VersionLoad {
  std::string service, version;
  int64_t in_flight = 0;           ///< requests that its endpoints have not answered yet, copies included
  double requests_per_second = 0;  ///< sent to its endpoints, mean of the last ten seconds
};

}  // namespace serin::router
