// proxy.h: the data path of the router: pick a version by an independent draw, forward, observe, shield, hedge, mirror.
//
//   Proxy proxy(config, controller, loops, metrics);
//   net::Server::start_streaming(loops, {...}, proxy.handlers());
//
// Every attempt that took part in the draw becomes an observation; retries, fallbacks and forced versions never do. A canary attempt that fails
// or is refused is run again on stable before the client sees it, within the shield's budget, and still counts against the canary.
#pragma once

#include <memory>

#include "router/config/config.h"
#include "router/control/controller.h"
#include "runtime/base/metrics.h"
#include "runtime/net/loop.h"
#include "runtime/net/stream.h"

namespace serin::router {

class Proxy {
 public:
  Proxy(const RouterConfig& config, Controller& controller, net::Loops& loops, metrics::Registry& metrics);
  ~Proxy();
  /// For the server whose clients are to be routed. The proxy must outlive it.
  net::HandlerFactory handlers();
  /// Whether every version has been asked for its health once: who takes over traffic should know whom to trust.
  bool is_settled() const;
  /// From now on /v2/health/ready answers 503; everything else goes on.
  void stop_being_ready();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
