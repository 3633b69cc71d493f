// external_metrics.h: the API external.metrics.k8s.io/v1beta1, from which a HorizontalPodAutoscaler reads the load of a version.
//
//   ExternalMetrics api(proxy.load_source());
//   api.answer(request);    // GET /apis/external.metrics.k8s.io/v1beta1/namespaces/models/serin_route_in_flight_requests?labelSelector=...
//
// A namespace says who asks and not what is measured, so each sees the same. The API server has authorized the request before it sends it here.
#pragma once

#include <string_view>
#include <utility>

#include "router/scaling/version_load.h"
#include "runtime/net/http.h"

namespace serin::router {

class ExternalMetrics {
 public:
  explicit ExternalMetrics(LoadSource loads) : loads_(std::move(loads)) {}

  net::Response answer(const net::Request& request) const;

 private:
  net::Response values(std::string_view metric, std::string_view query) const;

  const LoadSource loads_;
};

}  // namespace serin::router
