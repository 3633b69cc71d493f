// service_control.h: one service of the controller: its rollout, its word in the weights page, and what is not on disk yet.
//
// Whatever changes the rollout (an answer, the clock, a person) ends in changed(): an entry for the audit log, a fall of the weight applied at
// once, and a number that waits to be saved. The controller's thread takes what is unsaved, writes it, and reports saved(): only then does a
// weight rise.
//
// Where several routers share the service (replicas.h), one of them leads. The leader has two judges: `rollout_` weighs what all routers see, with
// half of alpha, and moves the steps; `own_` weighs what this one sees, with 1/(2R) of it. A follower has only the latter, as `rollout_`, and goes
// where the shared store says: adopt(). Whoever comes to a verdict acts on it at once and leaves it in trips() for the others.
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
#include "router/control/controller.h"
#include "router/control/learned.h"
#include "router/control/restore.h"
#include "router/control/sightings.h"
#include "router/store/shared_store.h"
#include "router/store/store.h"
#include "router/store/weights_page.h"
#include "router/view/service_metrics.h"
#include "runtime/base/published.h"

namespace serin::router {

/// The word that a restored service begins with.
Split split_of(const ServiceConfig& config, const Restored& restored);
/// What of `target` may be applied before it is on disk: nothing that brings more traffic to a canary or moves stable.
Split without_rises(const Split& applied, const Split& target);
int64_t wall_milliseconds();

/// Thread-safe.
class ServiceControl {
 public:
  using Request = Controller::Request;
  using Time = rollout::Time;

  /// `slot` of `page` holds split_of(config, restored) already. All referred to must outlive this. `routers`: how many there may be that share the
  /// service; 0: this one is alone.
  ServiceControl(const ServiceConfig& config, Restored restored, store::WeightsPage& page, size_t slot, metrics::Registry& metrics,
                 Time now, int routers = 0);

  const ServiceConfig& config() const { return config_; }
  Split split() const { return Split::unpack(word_.load(std::memory_order_acquire)); }
  std::shared_ptr<const rollout::Spec> spec() const { return spec_.get(); }
  uint32_t share_of(size_t version) const;  ///< of requests, in parts per million
  /// Of the rollout under way, with its id; nothing where there is none.
  std::pair<std::string, std::shared_ptr<const rollout::Spec>> running_spec() const;
  Pace pace() const { return {hedge_after_.load(std::memory_order_relaxed), p99_.load(std::memory_order_relaxed)}; }

  /// What a command has done: the number to wait for, and whether traffic follows it already (then the disk is not the caller's concern).
  struct Done {
    uint64_t change = 0;
    bool applied = false;
  };

  // True: something changed and waits to be saved.
  bool observe(rollout::Observation observation, Time now);
  bool observe(rollout::ShadowPair pair, Time now);
  /// An answer to the specification's query `guard`; nothing: none that is fresh. Of another rollout than `id` it says nothing.
  bool observe_sample(const std::string& id, size_t guard, std::optional<double> value, Time now);
  bool tick(Time now);

  // Several routers; thread-safe as the rest.
  /// Whether this one leads. Who begins to takes everything up from the evidence of now on, as after a restart.
  void lead(bool leading, Time now);
  bool leads() const;
  /// The number of the last change that is saved; taken before the shared store is looked at, it says of which change let_rise() speaks.
  uint64_t saved_change() const;
  /// Whether the others follow that change; until they do, and after each later one, weights do not rise. `waits_for`: who does not, for people.
  void let_rise(bool allowed, uint64_t change, const std::string& waits_for);
  /// What the shared store says. False: not followed, because this router's configuration does not know one of the versions.
  /// `agreed`: by a majority. Otherwise it may be old, and no weight rises by it.
  bool adopt(const store::ServiceRecord& record, bool agreed, Time now);
  /// Somebody else's verdict. False: that rollout does not run here.
  bool trip(const store::Trip& trip, Time now);
  /// Verdicts of this router that the others must learn of; each once.
  std::vector<store::Trip> take_trips();
  /// What this router has seen since the last call, where another one leads; and what the leader does with it.
  Sightings take_sightings();
  bool observe_of_others(const Sightings& sightings, Time now);

  /// The state of a rollout that is paused at a gate, or runs; nothing: none does, or another router leads it.
  std::optional<rollout::State> running_state() const;
  /// A yes to the gate that rollout `id` waits at; `who` said it.
  Result<Done> confirm(const std::string& id, std::string_view gate, const std::string& who, Time now);

  Result<Done> start(rollout::Spec spec, const Request& request, Time now);
  Result<Done> set_weight(uint32_t weight_ppm, const Request& request, Time now);
  Result<Done> pause(const Request& request, Time now);
  Result<Done> resume(const Request& request, Time now);
  Result<Done> promote(const Request& request, Time now);
  Result<Done> abort(const Request& request, Time now);
  Result<Done> undo(const Request& request, Time now);
  /// What the last rollout was asked for, to start it again; refuses while one runs.
  Result<rollout::Spec> last_spec() const;
  /// Until the others follow the last change; kUnavailable naming who does not.
  Status wait_until_agreed(std::chrono::milliseconds longest);
  /// Until the change is on disk, or could not be written.
  Status wait_until_saved(uint64_t change);

  /// Writes all that is unsaved, what comes meanwhile included; what was written takes effect. False: there was nothing to write.
  Result<bool> save(store::Store& store, Time now);

  /// Once nobody observes any more; and before anybody does, takes of it what still holds.
  Learned take_learned();
  void remember(Learned learned);

  ServiceStatus status(Time now) const;
  /// Why the rollout of that id was decided as it was, or how near it is to a verdict; nothing where it is not the current one, nor the last one and
  /// decided by this run of the router.
  std::optional<std::string> explain(const std::string& id, Time now) const;
  /// The same of the last one, without the why.
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
  uint64_t epoch_ = 0, page_epoch_ = 0;       // page_epoch_: as the page has it
  std::optional<rollout::Rollout> rollout_;   // while one runs
  std::optional<rollout::Rollout> own_;       // of the leader among several: what this router alone sees
  std::optional<store::RolloutRecord> last_;  // of the running one what does not change; of a finished one everything
  size_t steps_ = 0;                          // of its specification
  Time started_;                              // of the running one, moved back by what it ran before a restart
  struct Warm {
    std::string version;  // stable before the last promotion: gets copies of requests, so that undo finds it ready
    Time until;
  };
  std::optional<Warm> warm_;  // only while no rollout runs
  RecentLatencies latencies_;
  std::vector<std::optional<EndpointCount>> endpoints_;  // by version; nothing: not reported yet
  uint64_t change_ = 0, saved_change_ = 0, failed_change_ = 0;
  std::optional<Error> store_error_;  // of the last attempt
  std::vector<store::HistoryEntry> unsaved_history_;
  std::vector<store::VerdictEntry> unsaved_verdicts_;
  const int routers_;               // that share the service at most; 0: this one is alone
  bool leading_ = true;             // always, where it is alone
  bool agreed_ = true;              // every other router follows the last change
  std::string waits_for_;           // who does not
  std::vector<store::Trip> trips_;  // for the others
  bool told_ = false;               // the verdict at hand came from another router
  std::string told_verdict_;        // why, as that one sent it
  Sightings sightings_;             // for the leader
  std::string verdict_;             // of last_, as JSON; empty: an earlier run's
  Time next_second_{};

  std::array<RecentAnswers, 2> recent_;          // by arm
  std::array<AnswerSummary, 2> recent_summary_;  // of recent_, renewed with the timeline
  Timeline timeline_;
  EvidencePace pace_;
  Time watch_until_{};

  std::vector<std::shared_ptr<void>> gauges_;  // series that are read when scraped
};

}  // namespace serin::router
