// proxy.h: The data path of the router: choose a version by an independent draw, forward, observe, shield, hedge and mirror.
//
//   Proxy proxy(config, controller, loops, recorders, predictions, metrics);
//   net::Server::start_streaming(loops, {...}, proxy.handlers());
//
// Every attempt that took part in the draw becomes an observation; retries, fallbacks and forced versions never do. A canary attempt that
// fails or is refused is repeated on stable before the client sees it, within the shield's budget. It still counts against the canary.
#pragma once

#include <memory>
#include <vector>

#include "router/config/config.h"
#include "router/control/controller.h"
#include "router/kubernetes/slice_watch.h"
#include "router/outcomes/predictions.h"
#include "router/recording/recorder.h"
#include "router/scaling/version_load.h"
#include "runtime/base/metrics.h"
#include "runtime/net/loop.h"
#include "runtime/net/stream.h"

namespace serin::router {

class Proxy {
 public:
  /// `slices`: follows the EndpointSlices of versions that name some, and has not begun. Null: no version does. It must outlive the proxy.
  Proxy(const RouterConfig& config, Controller& controller, net::Loops& loops, Recorders& recorders, AllPredictions& predictions,
        metrics::Registry& metrics, kubernetes::SliceWatch* slices = nullptr);
  ~Proxy();
  /// For the server that accepts the clients to be routed. The proxy must outlive it.
  net::HandlerFactory handlers();
  /// Whether the health of every version has been checked once: a router that takes over traffic should know its healthy endpoints.
  bool is_settled() const;
  /// Begins the versions of a successor with the endpoints that are known here, where another source has to tell them: it may not answer.
  void hand_endpoints_to(RouterConfig& next) const;
  /// From now on /v2/health/ready answers 503; everything else continues.
  void stop_being_ready();
  /// Tells the load of every version of every service. It may be called from any thread, also after this proxy has ended.
  LoadSource load_source() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
