// replicas.h: Connects this router with the others that share its rollouts: a thread that watches the shared store, and messages to the
// peers.
//
//   a verdict here  --at once--> own weight 0 --directly--> the others' weight 0
//                                            `--> a trip in the shared store, as soon as it can be reached
//   the leader's step --save()--> shared store --watch--> every router follows and reports it --> the leader may take the next step
//
// If the store cannot be reached, traffic continues, no weight rises and every router judges by itself. The last leader still judges for
// all routers that reach it. The thread checks the store after each change and twice a second.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "router/config/config.h"
#include "router/control/service_status.h"
#include "router/control/services.h"
#include "router/scaling/version_load.h"
#include "router/store/shared_store.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::router {

/// Thread-safe.
class Replicas {
 public:
  /// Reads the store once before it returns, without requiring a majority: weights fall by that state, none rises. kFailedPrecondition: the
  /// maximum number of routers exists already. `changed`: called when something waits to be saved.
  static Result<std::unique_ptr<Replicas>> start(const ReplicasConfig& config, store::SharedStore& store, const Services& services,
                                                 metrics::Registry& metrics, std::function<void()> changed);
  ~Replicas();

  /// The URL of this router's admin API. From now on it is a member, and may lead.
  void advertise(std::string admin);
  /// A service may have reached a verdict: the other routers are notified before the calling thread continues.
  void tell_verdicts();
  ReplicasStatus status() const;
  /// From now on the load that `source` reports goes to the other routers.
  void share_load(LoadSource source);
  /// This router's load together with that of the others.
  std::vector<VersionLoad> with_load_of_others(const std::vector<VersionLoad>& own) const;

 private:
  struct State;
  explicit Replicas(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
