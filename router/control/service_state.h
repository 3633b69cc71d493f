// service_state.h: One service: its stable version, its rollout, the record of the last one, and every step from one to the next.
//
//   state.begin(spec, now);  ...  if (rollout::is_over(state.rollout->state().phase)) state.finish(now);
//   const Split wanted = state.target();
//
// Pure: no lock, no store, no weights page. The wall clock only dates records. ServiceControl locks it, applies its target and saves it.
//
// Two numbers are called epoch. The rollout's own epoch goes into the split word and comes back with every answer: an answer drawn under
// another one is no evidence. The service's epoch rises with every command and verdict, and If-Match compares it. The service's is never
// the smaller one.
//
// If several routers share the service (replicas.h), the leader has two judges. `rollout` weighs the observations of all routers, with half
// of alpha, and moves the steps. `own` weighs this router's observations, with 1/(2R) of alpha. A follower has only the latter, as
// `rollout`, and follows the shared store. Alpha is divided by the maximum number of routers (R), not by the number alive. By the union
// bound the chance that any of these R+1 judges rolls a healthy canary back stays below alpha, for each tenure of a leader. A new leader
// begins with empty evidence, as a router does after a restart. If the service permits several rollouts at once, alpha is divided by their
// maximum number as well (tracks.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/config.h"
#include "router/config/split.h"
#include "router/control/baseline.h"
#include "router/control/restore.h"
#include "router/control/service_status.h"
#include "router/rollout/rollout.h"
#include "router/rollout/verdict_record.h"
#include "router/store/store.h"

namespace serin::router {

struct ServiceState {
  using Time = rollout::Time;

  /// `config` must outlive this. `routers`: the maximum number that share the service; 0: this one is alone.
  ServiceState(const ServiceConfig& config, Restored restored, int routers, Time now);

  // The present state.
  /// The wanted placement of requests; the one in force may lag behind it.
  Split target() const;
  /// Of the current or last rollout; there must be one.
  store::RolloutRecord record(Time now) const;
  store::ServiceRecord service_record(Time now) const;
  /// The epoch that answers carry.
  uint64_t answers_epoch() const { return rollout ? rollout->state().epoch : epoch; }
  Pace pace() const;
  const rollout::State& last_state() const { return last->report.state; }

  // Conditions of commands. kFailedPrecondition and kInvalidArgument say why it is refused.
  Status check_epoch(const std::optional<uint64_t>& if_match) const;
  Result<rollout::Rollout*> running(std::string_view command);
  /// The specification with the defaults of the service, if a rollout of it may begin.
  Result<rollout::Spec> prepared(rollout::Spec spec) const;
  /// The same, whether or not one runs.
  Result<rollout::Spec> completed(rollout::Spec spec) const;
  /// The largest weight that the canary's healthy endpoints carry; 100 % while no rollout runs, or its specification does not ask.
  uint32_t capacity_ppm() const;
  Status check_undo() const;
  /// The specification of the last rollout, to start it again.
  Result<rollout::Spec> last_spec() const;

  // Changes.
  void begin(rollout::Spec spec, Time now);
  void raise_epoch();
  /// The verdict is in: from here on the rollout is a record. Returns the reason.
  rollout::VerdictRecord finish(Time now);
  /// All traffic goes back to the version that was stable before the promotion.
  void undo(const std::string& reason);
  /// The version before the promotion has been kept warm for long enough.
  void cool_down(Time now);

  /// Another rollout of the service was promoted or undone. None runs here.
  void follow_stable(const std::string& version);

  // With other routers.
  /// This router leads from now on: it collects new evidence of all routers.
  void judge_for_all(Time now);
  void judge_alone();
  /// The configuration has the versions of `record`.
  bool knows(const store::ServiceRecord& record) const;
  /// This router ended the rollout that runs according to `record`: its verdict stands until the leader has taken it up.
  bool has_ended(const store::ServiceRecord& record) const;
  bool is_at(const store::ServiceRecord& record) const;
  /// Takes the state over. True: a rollout begins here with it. An error changes nothing.
  Result<bool> follow(const store::ServiceRecord& record, Time now);

  const ServiceConfig& config;
  const int routers;
  std::string stable;
  uint64_t epoch = 0;
  std::optional<rollout::Rollout> rollout;  ///< while one runs
  std::optional<rollout::Rollout> own;      ///< the leader's judge of this router's observations alone
  /// Of the running rollout: the parts that do not change. Of a finished one: everything.
  std::optional<store::RolloutRecord> last;
  std::string verdict;  ///< of `last`, as JSON; empty: from an earlier run
  size_t steps = 0;     ///< of its specification
  struct Warm {
    std::string version;  ///< stable before the last promotion: gets copies of requests, so that it is warm for an undo
    Time until;
  };
  std::optional<Warm> warm;                             ///< only while no rollout runs
  std::optional<Warm> warm_elsewhere;                   ///< the same at a follower: the leader sends the copies
  std::shared_ptr<const rollout::Spec> spec;            ///< of the running rollout; the service's defaults if none runs
  RecentLatencies latencies;                            ///< of the stable version
  std::vector<std::optional<EndpointCount>> endpoints;  ///< by version; nothing: not reported yet

 private:
  rollout::Rollout resumed(const rollout::Spec& given, rollout::State state, bool of_all, Time now) const;
  std::shared_ptr<const rollout::Spec> idle_spec() const;
  Status check_versions(const rollout::Spec& given) const;
  Status check_outcomes(const std::vector<rollout::OutcomeLimit>& limits) const;
  /// The version before the last promotion, for as long as it is still to be kept warm. Nothing: none is.
  std::optional<Warm> warm_after(const rollout::Spec& promoted, Time now) const;
  std::optional<Warm> warm_for(std::chrono::nanoseconds time, Time now) const;

  Time started_;  // of the running rollout, moved back by its run time before a restart
};

}  // namespace serin::router
