// route_weights.h: The weights of a Gateway API HTTPRoute (gateway.networking.k8s.io/v1) for the shares of versions. Pure.
//
//   SERIN_TRY(const auto patch, weight_patch(route, {{"serin", 950'000}, {"serin-canary", 50'000}}));   // 95 and 5
//
// A rule divides the traffic if it has at least two of the backends, each of them once, and all that have a share. Any other rule is left alone,
// such as one that sends testers to the canary. So the backend of a version without traffic may be gone.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace serin::router {

struct BackendShare {
  std::string backend;  ///< name of a backendRef
  uint32_t ppm = 0;     ///< all together one million
};

/// A JSON patch (RFC 6902) that gives these backends their weights and changes nothing else; empty: they have them. It applies only to this
/// resourceVersion of the route. kNotFound names the route's rules and what they lack.
Result<boost::json::array> weight_patch(const boost::json::object& route, const std::vector<BackendShare>& shares);

}  // namespace serin::router
