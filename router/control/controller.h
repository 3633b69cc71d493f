// controller.h: The only owner of every rollout: it feeds the judge, applies weights, saves state and answers commands.
//
//   io threads --observe()--> judge --weight falls: split word at once--> data path          (before the next request)
//                                   --weight rises: persisted first, then the split word-->
//   admin API  --start/pause/...-->
//
// Thread-safe: each service has one mutex, locked for microseconds. The data path never waits for the disk under it: the controller's own
// thread saves a fall after it was applied.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/config/config.h"
#include "router/config/split.h"
#include "router/control/apply.h"
#include "router/control/command.h"
#include "router/control/learned.h"
#include "router/control/observer.h"
#include "router/control/service_status.h"
#include "router/control/timeline.h"
#include "router/rollout/rollout.h"
#include "router/store/shared_store.h"
#include "router/store/store.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::router {

struct Services;

using HistoryEntry = store::HistoryEntry;

class Controller {
 public:
  /// Opens the store and restores the services: the rollouts with the same history, never with a higher canary weight. kAlreadyExists:
  /// another router has locked it, named by pid if known. A damaged store is set aside and reported. `learned` is the knowledge of the
  /// previous controller in this process; it is only read here. No thread runs until begin().
  static Result<std::unique_ptr<Controller>> open(const RouterConfig& config, metrics::Registry& metrics,
                                                  const LearnedServices& learned = {});
  /// Starts the thread that lets time pass and saves. The parts of `learned` that still apply are used. `observer` must outlive stop().
  void begin(LearnedServices learned = {}, Observer* observer = nullptr);
  ~Controller();

  // Call these before another controller, here or in another process, opens the same store. No command may be in progress, and none may
  // follow.
  /// From now on answers are no evidence.
  void stop_learning();
  /// Saves unsaved state, once all threads have stopped learning, and ends the thread.
  void stop();
  /// stop(), and releases the store. Requests may still be placed as before.
  void retire();
  /// After retire(): the knowledge that another controller in this process may continue with.
  LearnedServices take_learned();

  // Data path. `service` is the index in the configuration.
  Split split(size_t service) const;  ///< one atomic load
  /// Takes every drawn attempt, also while no rollout runs: stable's latencies are the baseline. `epoch` may be the split's 12 bits or all
  /// bits.
  void observe(size_t service, rollout::Observation observation);
  void observe(size_t service, rollout::ShadowPair pair);
  void observe(size_t service, rollout::ResourceRound round);
  /// The running rollout's guard and shield for the data path: compare mode, output name, deadline, shield budget. The service's defaults
  /// if none runs. Never null. Changes with the epoch.
  std::shared_ptr<const rollout::Spec> spec(size_t service) const;
  Pace pace(size_t service) const;  ///< two atomic loads; renewed every second

  // Commands. They wait until their effect is on disk, so data path threads must not call them; a rise is applied only after that.
  // kUnavailable: the store cannot be written; weights then only fall. kNotFound names the service.
  using Request = CommandRequest;
  /// kFailedPrecondition (409): one is running. kInvalidArgument: the canary is stable or unknown, or none of its endpoints is healthy.
  Result<ServiceStatus> start(rollout::Spec spec, const Request& request);
  /// Starts it unless that was done before (apply.h). `dry_run`: changes nothing. Errors: those of start().
  Result<Applied> apply(rollout::Spec spec, const Request& request, bool dry_run = false);
  Result<ServiceStatus> set_weight(const std::string& service, uint32_t weight_ppm, const Request& request);
  Result<ServiceStatus> pause(const std::string& service, const Request& request);
  Result<ServiceStatus> resume(const std::string& service, const Request& request);
  Result<ServiceStatus> promote(const std::string& service, const Request& request);
  Result<ServiceStatus> abort(const std::string& service, const Request& request);
  /// After a promotion: moves all traffic back to the version that was stable before.
  Result<ServiceStatus> undo(const std::string& service, const Request& request);
  /// Starts the last rollout again, with the same specification.
  Result<ServiceStatus> retry(const std::string& service, const Request& request);
  Result<ServiceStatus> status(const std::string& service) const;
  std::vector<ServiceStatus> status() const;
  Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) const;
  /// The course of the current or last rollout. It ends a minute after the verdict, and starts empty when the router restarts.
  Result<Timeline> timeline(const std::string& service) const;
  /// The reason for a rollout's decision, as JSON. `name` is its id, or a service for its current or last rollout.
  Result<std::string> explain(const std::string& name) const;
  /// The data path reports the number of endpoints of each version, so that start() can refuse a canary that is down.
  void set_endpoint_count(size_t service, size_t version, EndpointCount count);
  std::optional<EndpointCount> endpoint_count(size_t service, size_t version) const;  ///< nothing: not reported yet
  uint32_t share_of(size_t service, size_t version) const;                            ///< of the service's requests, in parts per million
  std::optional<ReplicasStatus> replicas() const;                                     ///< nothing if this router runs alone
  /// The damage found in the store at start, and the path it was moved to; empty: none.
  const std::string& damage() const;

  // For the rooms around the controller, which change services as answers do. Any code that has changed one calls changed().
  const Services& services() const;
  store::Store& store();
  store::SharedStore* shared_store();  ///< null if this router runs alone
  void changed();
  void save_soon();

 private:
  struct State;
  explicit Controller(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
