// http_routes.h: Gateway API HTTPRoutes that divide traffic as the router does: the leader writes the shares of versions as weights of backends.
//
//   the split word falls  -> the weights are written at once, before the store is
//   the split word rises  -> that is after the store was written; then the weights, and steps wait until the API has them
//
// Other weights in the route are replaced. All of its other fields are left alone (route_weights.h).
#pragma once

#include <memory>

#include "router/config/config.h"
#include "router/control/controller.h"
#include "router/kubernetes/api_client.h"
#include "runtime/base/metrics.h"

namespace serin::router {

class HttpRoutes {
 public:
  /// All must outlive this. It has a thread, and does nothing while this router does not lead.
  HttpRoutes(const kubernetes::Cluster& cluster, const RouterConfig& config, Controller& controller, metrics::Registry& metrics);
  ~HttpRoutes();

  /// A share may have changed. From any thread.
  void wake();
  /// Ends the thread.
  void end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
