// replicas.h: this router among several that share their rollouts: a thread that looks at the shared store, and the way to the others.
//
//   a verdict here  --at once--> own weight 0 --directly--> the others' weight 0
//                                            `--> a trip in the shared store, as soon as it can be reached
//   the leader's step --save()--> shared store --watch--> every router follows, and says so --> the leader may take the next step
//
// Where the store cannot be reached traffic goes on, nothing rises, every router judges by itself, and the last leader still judges for all that reach
// it. The thread looks again when something changed, and twice a second.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "router/config/config.h"
#include "router/control/controller.h"
#include "router/control/services.h"
#include "router/store/shared_store.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::router {

/// Thread-safe.
class Replicas {
 public:
  /// Looks at the store once before it returns, without insisting on a majority: weights fall by what is found there, none rises.
  /// kFailedPrecondition: there are as many routers as there may be. `changed`: something waits to be saved.
  static Result<std::unique_ptr<Replicas>> start(const ReplicasConfig& config, store::SharedStore& store, const Services& services,
                                                 metrics::Registry& metrics, std::function<void()> changed);
  ~Replicas();

  /// The url of this router's admin API; from now on it is a member, and may lead.
  void advertise(std::string admin);
  /// A service may have come to a verdict: the others are told before this returns to its thread's work.
  void tell_verdicts();
  ReplicasStatus status() const;

 private:
  struct State;
  explicit Replicas(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
