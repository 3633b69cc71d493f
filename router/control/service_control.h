// service_control.h: One service of the controller: its rollout, its word in the weights page, and its unsaved changes.
//
// Every change of the rollout (by an answer, the clock or a person) ends in changed(). It adds an entry to the audit log, applies a fall of
// the weight at once, and numbers the change for saving. The controller's thread takes the unsaved changes, writes them, and reports
// saved(). Only then does a weight rise.
//
// If several routers share the service (replicas.h), one of them leads. The leader has two judges. `rollout_` weighs the observations of
// all routers, with half of alpha, and moves the steps. `own_` weighs this router's observations, with 1/(2R) of alpha. A follower has only
// the latter, as `rollout_`, and follows the shared store: adopt(). A router that reaches a verdict applies it at once and queues it for
// the others: take_trips().
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "router/control/baseline.h"
#include "router/control/command.h"
#include "router/control/evidence_pace.h"
#include "router/control/learned.h"
#include "router/control/restore.h"
#include "router/control/service_metrics.h"
#include "router/control/service_status.h"
#include "router/control/sightings.h"
#include "router/control/timeline.h"
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

  const ServiceConfig& config() const { return config_; }
  Split split() const { return Split::unpack(word_.load(std::memory_order_acquire)); }
  std::shared_ptr<const rollout::Spec> spec() const { return spec_.get(); }
  uint32_t share_of(size_t version) const;  ///< of requests, in parts per million
  /// The running rollout's specification, with its id; nothing if none runs.
  std::pair<std::string, std::shared_ptr<const rollout::Spec>> running_spec() const;
  Pace pace() const { return {hedge_after_.load(std::memory_order_relaxed), p99_.load(std::memory_order_relaxed)}; }

  /// The result of a command: the change number to wait for, and whether traffic follows it already. If so, the caller need not wait for
  /// the disk.
  struct Done {
    uint64_t change = 0;
    bool applied = false;
  };

  // True: something changed and waits to be saved.
  bool observe(rollout::Observation observation, Time now);
  bool observe(rollout::ShadowPair pair, Time now);
  /// An answer to the specification's query `guard`; nothing: no fresh answer. Ignored if the running rollout is not `id`.
  bool observe_sample(const std::string& id, size_t guard, std::optional<double> value, Time now);
  bool tick(Time now);

  // For several routers; thread-safe as the rest.
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

  /// The state of a rollout that runs or is paused at a gate. Nothing: there is none, or another router leads it.
  std::optional<rollout::State> running_state() const;
  /// `who` confirmed the gate that rollout `id` waits at.
  Result<Done> confirm(const std::string& id, std::string_view gate, const std::string& who, Time now);

  Result<Done> start(rollout::Spec spec, const Request& request, Time now);
  Result<Done> set_weight(uint32_t weight_ppm, const Request& request, Time now);
  Result<Done> pause(const Request& request, Time now);
  Result<Done> resume(const Request& request, Time now);
  Result<Done> promote(const Request& request, Time now);
  Result<Done> abort(const Request& request, Time now);
  Result<Done> undo(const Request& request, Time now);
  /// The specification of the last rollout, to start it again; an error while one runs.
  Result<rollout::Spec> last_spec() const;
  /// Waits until the others follow the last change; kUnavailable names those that do not.
  Status wait_until_agreed(std::chrono::milliseconds longest);
  /// Waits until the change is on disk, or could not be written.
  Status wait_until_saved(uint64_t change);

  /// Writes all unsaved changes, including those that arrive meanwhile, and applies them. False: there was nothing to write.
  Result<bool> save(store::Store& store, Time now);

  /// take_learned(): after the last observation. remember(): before the first; it uses the parts that still apply.
  Learned take_learned();
  void remember(Learned learned);

  ServiceStatus status(Time now) const;
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
  struct Unsaved {
    uint64_t change = 0;
    store::Change what;
  };
  std::optional<Unsaved> unsaved(Time now) const;
  void saved(const Unsaved& unsaved);
  void save_failed(const Unsaved& unsaved, const Error& error);

  // All of these require mutex_.
  rollout::Rollout begun(const rollout::Spec& spec, Time now) const;
  rollout::Rollout resumed(const rollout::Spec& spec, rollout::State state, bool of_all, Time now) const;
  bool may_rise() const { return leading_ && agreed_ && split() == target(); }
  void settle();
  void note(const rollout::Observation& observation);
  void note(const rollout::ShadowPair& pair);
  bool begin_sightings();
  void remember_trip();
  static Time begin_of(const store::RolloutRecord& record, Time now);
  bool verdict_of_own(rollout::Phase before, Time now);
  bool knows(const store::ServiceRecord& record) const;
  Status check_epoch(const Request& request) const;
  Status check_leads() const;
  Status check_store() const;
  Result<rollout::Rollout*> running(std::string_view command);
  Status check_canary(const rollout::Spec& spec) const;
  Done changed(rollout::Phase before, std::string_view event, std::string actor, const std::string& given_reason, Time now);
  Done written_down(const rollout::State& after, std::string_view event, std::string actor, const std::string& given_reason);
  void conclude(const rollout::VerdictRecord& why);
  Done command_done(rollout::Phase before, std::string_view event, const Request& request, Time now);
  Done unchanged() const;
  void finish(Time now);
  void keep_warm(std::chrono::nanoseconds time, Time now);
  bool cool_down(Time now);
  Split target() const;
  void apply(const Split& split);
  void set_pace();
  void keep_watch(Time now);
  double seconds(Time now) const;
  store::RolloutRecord record(Time now) const;

  const ServiceConfig& config_;
  store::WeightsPage& page_;
  const size_t slot_;
  const std::atomic<uint64_t>& word_;
  Published<rollout::Spec> spec_;
  std::atomic<std::chrono::nanoseconds> hedge_after_{std::chrono::nanoseconds(0)}, p99_{std::chrono::nanoseconds(0)};

  mutable std::mutex mutex_;  // guards everything below
  ServiceMetrics service_metrics_;
  std::condition_variable saved_;
  std::string stable_;
  uint64_t epoch_ = 0, page_epoch_ = 0;      // page_epoch_: the epoch in the page
  std::optional<rollout::Rollout> rollout_;  // while one runs
  std::optional<rollout::Rollout> own_;      // the leader's judge of this router's observations alone
  // Of the running rollout: the parts that do not change. Of a finished one: everything.
  std::optional<store::RolloutRecord> last_;
  size_t steps_ = 0;  // of its specification
  Time started_;      // of the running rollout, moved back by its run time before a restart
  struct Warm {
    std::string version;  // stable before the last promotion: gets copies of requests, so that it is warm for an undo
    Time until;
  };
  std::optional<Warm> warm_;  // only while no rollout runs
  RecentLatencies latencies_;
  std::vector<std::optional<EndpointCount>> endpoints_;  // by version; nothing: not reported yet
  uint64_t change_ = 0, saved_change_ = 0, failed_change_ = 0;
  std::optional<Error> store_error_;  // of the last attempt
  std::vector<store::HistoryEntry> unsaved_history_;
  std::vector<store::VerdictEntry> unsaved_verdicts_;
  const int routers_;               // the maximum that share the service; 0: this one is alone
  bool leading_ = true;             // always true if it is alone
  bool agreed_ = true;              // every other router follows the last change
  std::string waits_for_;           // the routers that do not
  std::vector<store::Trip> trips_;  // for the others
  bool told_ = false;               // the current verdict came from another router
  std::string told_verdict_;        // the reason that router sent
  Sightings sightings_;             // to send to the leader
  std::string verdict_;             // of last_, as JSON; empty: from an earlier run
  Time next_second_{};

  std::array<RecentAnswers, 2> recent_;          // by arm
  std::array<AnswerSummary, 2> recent_summary_;  // of recent_, renewed with the timeline
  Timeline timeline_;
  EvidencePace pace_;
  Time watch_until_{};

  std::vector<std::shared_ptr<void>> gauges_;  // series that are read when scraped
};

}  // namespace serin::router
