// controller.h: the one owner of every rollout: feeds the judge, applies weights, persists, answers commands.
//
//   io threads --observe()--> judge --weight falls: split word at once--> data path          (a verdict acts before the next request is routed)
//                                   --weight rises: persisted first, then the split word-->
//   admin API  --start/pause/...-->
//
// Thread-safe: one mutex for each service, held for microseconds; nothing waits for the disk under it on the data path (a fall is persisted by
// the controller's own thread, after it was applied).
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
#include "router/control/evidence_pace.h"
#include "router/control/learned.h"
#include "router/control/recent_answers.h"
#include "router/notify/audit_stream.h"
#include "router/rollout/rollout.h"
#include "router/store/shared_store.h"
#include "router/store/store.h"
#include "router/view/timeline.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::router {

using HistoryEntry = store::HistoryEntry;

/// This router among those that share its rollouts.
struct ReplicasStatus {
  std::string self, leader;            ///< names; leader empty: nobody leads, as far as is known
  std::string leader_admin;            ///< url of its admin API
  bool leads = false;                  ///< this one
  bool reachable = false;              ///< the shared store, when it was asked last
  double behind_seconds = 0;           ///< since what a majority agrees on was seen
  size_t untold = 0;                   ///< verdicts of this router that are not in the shared store yet
  std::vector<store::Member> members;  ///< alive, this one included
};

struct ServiceStatus {
  std::string service, stable;
  uint64_t epoch = 0;                          ///< for If-Match
  AnswerSummary recent_stable, recent_canary;  ///< renewed every second
  std::optional<rollout::Report> rollout;      ///< the current or the last one
  size_t rollout_steps = 0;                    ///< of its specification
  double rollout_seconds = 0;                  ///< from its start to now, or to its verdict
  std::optional<NextVerdict> next_verdict;     ///< of the running one, at the pace of the last seconds
  struct Warm {
    std::string version;
    double seconds = 0;
  };
  std::optional<Warm> warm;  ///< after a promotion: the version that undo would bring back, and how long it is still kept warm
  std::optional<ReplicasStatus> replicas;  ///< nothing where this router is alone
};

/// How fast stable is: what hedging and the exposure cap go by. 0: not known yet.
struct Pace {
  std::chrono::nanoseconds hedge_after{0};  ///< max(the specification's quantile of stable, 1.5 times its median); 0 where hedging is off
  std::chrono::nanoseconds p99{0};
};

class Controller {
 public:
  /// Opens the store (kAlreadyExists: locked by another router, named by pid where known; a damaged one is set aside and said so) and continues
  /// what was under way with the same history, never with a higher canary weight.
  /// `audit`, which must outlive the controller, is told every change once it is written. `learned`: what the controller before it in this process
  /// has learned; taken where it still holds, left as it is where this fails.
  static Result<std::unique_ptr<Controller>> open(const RouterConfig& config, metrics::Registry& metrics, AuditStream* audit = nullptr,
                                                  LearnedServices* learned = nullptr);
  ~Controller();

  // Before another controller, here or in another process, opens the same store. No command may be under way, and none may follow.
  /// Answers are no evidence any more.
  void stop_learning();
  /// Saves what is not saved, once nobody learns any more, and lets go of the store. Requests may still be placed as they were.
  void retire();
  /// Once it has retired: what a controller in this process may go on with.
  LearnedServices take_learned();

  // Data path. `service` is the index in the configuration.
  Split split(size_t service) const;  ///< one atomic load
  /// Every drawn attempt, also while no rollout runs (stable's latencies are the baseline). `epoch` may be the split's 12 bits or the whole.
  void observe(size_t service, rollout::Observation observation);
  void observe(size_t service, rollout::ShadowPair pair);
  /// Guard and shield of the running rollout, for the data path (compare mode, output name, deadline, shield budget); the service's defaults
  /// where none runs. Never null. Changes with the epoch.
  std::shared_ptr<const rollout::Spec> spec(size_t service) const;
  Pace pace(size_t service) const;  ///< two atomic loads; renewed every second

  // Commands. They wait until what they did is on disk (a rise is applied after that): not for the threads of the data path. kUnavailable where
  // the store cannot be written: weights then only fall. `if_match`: the epoch the caller saw; kConflict where it moved on. kNotFound names the service. `actor` goes to the audit log.
  struct Request {
    std::string actor = "cli";
    std::optional<uint64_t> if_match;
    std::string reason;
  };
  /// kFailedPrecondition (409) where one runs; kInvalidArgument: canary = stable, unknown version, no endpoint of the canary is healthy.
  Result<ServiceStatus> start(rollout::Spec spec, const Request& request);
  Result<ServiceStatus> set_weight(const std::string& service, uint32_t weight_ppm, const Request& request);
  Result<ServiceStatus> pause(const std::string& service, const Request& request);
  Result<ServiceStatus> resume(const std::string& service, const Request& request);
  Result<ServiceStatus> promote(const std::string& service, const Request& request);
  Result<ServiceStatus> abort(const std::string& service, const Request& request);
  /// After a promotion: all traffic back to the version that was stable before.
  Result<ServiceStatus> undo(const std::string& service, const Request& request);
  /// The last rollout once more, as it was asked for.
  Result<ServiceStatus> retry(const std::string& service, const Request& request);
  Result<ServiceStatus> status(const std::string& service) const;
  std::vector<ServiceStatus> status() const;
  Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) const;
  /// How the current or last rollout went; ends a minute after its verdict, and begins anew with a restart of the router.
  Result<Timeline> timeline(const std::string& service) const;
  /// Why a rollout was decided as it was, as JSON; `name` is its id or a service, whose current or last one is meant.
  Result<std::string> explain(const std::string& name) const;
  /// The data path tells how many endpoints each version has, so that start() can refuse a canary that is down.
  void set_endpoint_count(size_t service, size_t version, EndpointCount count);
  std::optional<EndpointCount> endpoint_count(size_t service, size_t version) const;  ///< nothing: not reported yet
  uint32_t share_of(size_t service, size_t version) const;                            ///< of the service's requests, in parts per million
  /// Where several routers share the rollouts: the url of this one's admin API, known once it listens. From then on it counts among them.
  void advertise(std::string admin);
  std::optional<ReplicasStatus> replicas() const;  ///< nothing where this router is alone
  /// What was wrong with the store found at start, and where it is now; empty: nothing.
  const std::string& damage() const;

 private:
  struct State;
  explicit Controller(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
