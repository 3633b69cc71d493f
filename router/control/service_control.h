// service_control.h: One service of the controller: its state behind one lock, its word in the weights page, and its way to disk.
//
//   service_state.h   where the service is, and every step from there       ledger.h       what is not on disk yet
//   leadership.h      its part among several routers                        service_watch.h   what people see of it
//
// Every change of the rollout (by an answer, the clock or a person) ends in changed(). It adds an entry to the audit log, applies a fall of
// the weight at once, and numbers the change for saving. The controller's thread writes the unsaved changes without the lock, and reports
// them. Only then does a weight rise. A router that reaches a verdict applies it at once and queues it for the others: take_trips().
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/mutex.h"
#include "router/control/apply.h"
#include "router/control/command.h"
#include "router/control/leadership.h"
#include "router/control/learned.h"
#include "router/control/ledger.h"
#include "router/control/restore.h"
#include "router/control/service_state.h"
#include "router/control/service_status.h"
#include "router/control/service_watch.h"
#include "router/control/sightings.h"
#include "router/store/shared_store.h"
#include "router/store/store.h"
#include "router/store/weights_page.h"
#include "runtime/base/published.h"

namespace serin::router {

/// The first word of a restored service.
Split split_of(const ServiceConfig& config, const Restored& restored);
/// The part of `target` that may be applied before it is on disk: nothing that moves more traffic to a canary or changes stable.
Split without_rises(const Split& applied, const Split& target);

/// Thread-safe.
class ServiceControl {
 public:
  using Request = CommandRequest;
  using Time = rollout::Time;

  /// `slot` of `page` holds split_of(config, restored) already. All references must outlive this. `routers`: the maximum number of routers
  /// that share the service; 0: this one is alone.
  ServiceControl(const ServiceConfig& config, Restored restored, store::WeightsPage& page, size_t slot, metrics::Registry& metrics,
                 Time now, int routers = 0);

  // Without the lock.
  const ServiceConfig& config() const { return config_; }
  Split split() const { return Split::unpack(word_.load(std::memory_order_acquire)); }
  std::shared_ptr<const rollout::Spec> spec() const { return spec_.get(); }
  uint32_t share_of(size_t version) const;     ///< of requests, in parts per million
  std::string warm_elsewhere(Time now) const;  ///< the version that the leader keeps warm after a promotion; empty: none, or this one leads
  Pace pace() const { return {hedge_after_.load(std::memory_order_relaxed), p99_.load(std::memory_order_relaxed)}; }

  // Effects of answers and time. True: something changed and waits to be saved.
  bool observe(rollout::Observation observation, Time now);
  bool observe(rollout::ShadowPair pair, Time now);
  /// The resources of the endpoints. With several routers, each asks them itself.
  bool observe(rollout::ResourceRound round, Time now);
  /// An answer to the specification's query `guard`; nothing: no fresh answer. Ignored if the running rollout is not `id`.
  bool observe_sample(const std::string& id, size_t guard, std::optional<double> value, Time now);
  /// Reported outcomes for the specification's guard.outcomes `guard` (rollout.h). Ignored if the running rollout is not `id`.
  bool observe_outcomes(const std::string& id, size_t guard, const rollout::OutcomeEvidence& evidence, Time now);
  bool tick(Time now);

  // Commands (service_commands.cc).
  /// The result of a command: the change number to wait for, and whether traffic follows it already. If so, the caller need not wait for
  /// the disk.
  struct Done {
    uint64_t change = 0;
    bool applied = false;
  };
  Result<Done> start(rollout::Spec spec, const Request& request, Time now);
  Result<Done> set_weight(uint32_t weight_ppm, const Request& request, Time now);
  Result<Done> pause(const Request& request, Time now);
  Result<Done> resume(const Request& request, Time now);
  Result<Done> promote(const Request& request, Time now);
  Result<Done> abort(const Request& request, Time now);
  Result<Done> undo(const Request& request, Time now);
  /// `who` confirmed the gate that rollout `id` waits at.
  Result<Done> confirm(const std::string& id, std::string_view gate, const std::string& who, Time now);
  /// Waits until the others follow the last change; kUnavailable names those that do not.
  Status wait_until_agreed(std::chrono::milliseconds longest);
  /// Waits until the change is on disk, or could not be written.
  Status wait_until_saved(uint64_t change);

  /// Writes all unsaved changes, including those that arrive meanwhile, and applies them. False: there was nothing to write.
  Result<bool> save(store::Store& store, Time now);

  // With other rollouts of the service (service_tracks.cc, tracks.h).
  /// All tracks of the service, with this one; the first owns stable. Before any other call.
  void share_with(std::vector<const ServiceControl*> tracks) { tracks_ = std::move(tracks); }
  struct Standing {
    std::string id, stable, canary;  ///< id and canary: of the current or last rollout
    bool runs = false;
    bool promotes_by_hand = false;
    bool everything = false;  ///< it runs and is to get all of the requests
  };
  Standing standing() const;
  TrackRollout track_rollout() const;
  /// The errors that start() would give if no rollout ran.
  Status may_replace(const rollout::Spec& spec) const;
  Status check_epoch(const std::optional<uint64_t>& if_match) const;
  /// Another track promoted `version`, or was undone: it is stable, and a rollout against the one before ends. The change to wait for;
  /// nothing: it is stable here already.
  std::optional<uint64_t> follow_stable(const std::string& version, const std::string& why, Time now);
  /// The version that a rollout on this router, as the leader, has made stable since the last call.
  std::optional<std::string> take_promotion();
  /// Nothing speaks against undo(): the version that it brings back.
  Result<std::string> may_undo(const Request& request) const;
  /// Ends the rollout for another one. `id`: only this one; empty: whichever runs. False: none runs.
  bool supersede(const std::string& why, Time now, const std::string& id = {});
  /// False: no rollout of the service goes to 100 % of the requests by itself.
  void let_promote(bool allowed);
  /// The version before the last promotion gets no more copies: another rollout needs the requests.
  void let_cool_down();
  /// Stable's latencies, which the first track knows best.
  void learn_from(const ServiceControl& first);

  // With other routers (service_replicas.cc).
  /// Whether this one leads. A router that starts to lead collects new evidence from now on, as after a restart.
  void lead(bool leading, Time now);
  bool leads() const;
  /// The number of the last saved change. Read it before the shared store: it identifies the change that let_rise() refers to.
  uint64_t saved_change() const;
  /// Whether the others follow that change. Until they do, and after each later change, weights do not rise. `waits_for`: the missing
  /// routers, for display.
  void let_rise(bool allowed, uint64_t change, const std::string& waits_for);
  /// Applies the state of the shared store. False: not followed, because this router's configuration lacks one of the versions. `agreed`:
  /// by a majority. Otherwise the state may be old, and no weight rises by it.
  bool adopt(const store::ServiceRecord& record, bool agreed, Time now);
  /// Another router's verdict. False: that rollout does not run here.
  bool trip(const store::Trip& trip, Time now);
  /// Verdicts of this router for the others; each is returned once.
  std::vector<store::Trip> take_trips();
  /// This router's observations since the last call, if another one leads; and the leader's counterpart.
  Sightings take_sightings();
  bool observe_of_others(const Sightings& sightings, Time now);

  // With a Gateway that divides traffic by this service's shares (objects/http_routes.h).
  /// Whether it has the shares of this word. Until it has, and after each later change, no step advances. `waits_for`: the reason, for
  /// display.
  void let_advance(bool allowed, const Split& shares, const std::string& waits_for);

  /// take_learned(): after the last observation. remember(): before the first; it uses the parts that still apply.
  Learned take_learned();
  void remember(Learned learned);

  // The present state.
  ServiceStatus status(Time now) const;
  /// The running rollout's specification, with its id; nothing if none runs.
  std::pair<std::string, std::shared_ptr<const rollout::Spec>> running_spec() const;
  /// The state of a rollout that runs or is paused at a gate. Nothing: there is none, or another router leads it.
  std::optional<rollout::State> running_state() const;
  /// The specification of the last rollout, to start it again; an error while one runs.
  Result<rollout::Spec> last_spec() const;
  /// The reason for the decision of the rollout with that id, or its distance to a verdict. Nothing unless it is the current rollout, or
  /// the last one and decided by this run of the router.
  std::optional<std::string> explain(const std::string& id, Time now) const;
  /// The outcome of the last rollout, without the reason.
  std::optional<std::string> outcome(const std::string& id) const;
  Timeline timeline() const;
  void set_endpoint_count(size_t version, EndpointCount count);
  std::optional<EndpointCount> endpoint_count(size_t version) const;
  void update_metrics();

 private:
  std::optional<Ledger::Batch> unsaved(Time now) const;
  Status check_store() const SERIN_REQUIRES(mutex_);
  bool may_rise() const SERIN_REQUIRES(mutex_) { return routed_ && leadership_.agreed() && split() == state_.target(); }
  bool wants_everything() const SERIN_REQUIRES(mutex_);
  uint32_t share_among_tracks(size_t version) const;
  uint32_t own_weight() const;
  void show_fitted(rollout::Report& report) const SERIN_REQUIRES(mutex_);
  bool end_promotion(const std::string& version, Time now);
  void settle() SERIN_REQUIRES(mutex_);
  template <class Seen>
  bool judge(const Seen& seen, Time now) SERIN_REQUIRES(mutex_);
  bool changed_by_itself(rollout::Phase before, Time now) SERIN_REQUIRES(mutex_);
  Done changed(rollout::Phase before, std::string_view event, std::string actor, const std::string& given_reason, Time now,
               const store::Trip* told = nullptr) SERIN_REQUIRES(mutex_);
  Done written_down(const rollout::State& after, std::string_view event, std::string actor, const std::string& given_reason)
      SERIN_REQUIRES(mutex_);
  void conclude(const rollout::VerdictRecord& why, const store::Trip* told = nullptr) SERIN_REQUIRES(mutex_);
  Done command_done(rollout::Phase before, std::string_view event, const Request& request, Time now) SERIN_REQUIRES(mutex_);
  Done unchanged() const SERIN_REQUIRES(mutex_);
  void apply(const Split& split) SERIN_REQUIRES(mutex_);

  const ServiceConfig& config_;
  store::WeightsPage& page_;
  const size_t slot_;
  const std::atomic<uint64_t>& word_;
  Published<rollout::Spec> spec_;  // state_.spec, for the data path
  std::atomic<std::chrono::nanoseconds> hedge_after_{std::chrono::nanoseconds(0)}, p99_{std::chrono::nanoseconds(0)};

  mutable Mutex mutex_;
  Condition saved_;
  ServiceState state_ SERIN_GUARDED_BY(mutex_);
  uint64_t page_epoch_ SERIN_GUARDED_BY(mutex_);  // the epoch in the page
  Ledger ledger_ SERIN_GUARDED_BY(mutex_);
  Leadership leadership_ SERIN_GUARDED_BY(mutex_);
  ServiceWatch watch_ SERIN_GUARDED_BY(mutex_);

  uint32_t capacity_ SERIN_GUARDED_BY(mutex_) = rollout::kAll;  // as the rollout knows it
  bool may_promote_ SERIN_GUARDED_BY(mutex_) = true;            // let_promote()
  bool routed_ SERIN_GUARDED_BY(mutex_) = true;                 // let_advance()
  std::string route_waits_for_ SERIN_GUARDED_BY(mutex_);
  std::optional<std::string> promotion_ SERIN_GUARDED_BY(mutex_);  // take_promotion()

  std::vector<const ServiceControl*> tracks_;  // share_with(); empty: the service has one
  std::vector<std::shared_ptr<void>> gauges_;  // series that are read when scraped
};

}  // namespace serin::router
