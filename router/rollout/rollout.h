// rollout.h: One rollout, from start to verdict: the specification, the state that must survive a restart, and the judge.
//
// Pure: it knows no sockets, no clock, no store. The caller (the controller) passes observations, ticks and commands with the time. If
// `changed` is true the caller applies the new weights (a fall at once, a rise after it was saved) and saves the state.
//
//   Rollout r = Rollout::start(spec, "digits-7", epoch, baseline, now);
//   if (r.observe(observation, now)) apply(r.state());
//
// Not thread-safe: one owner at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/rollout/observation.h"
#include "router/rollout/report.h"
#include "router/rollout/spec.h"
#include "runtime/base/result.h"

namespace serin::rollout {

struct Machine;          // machine.h
struct OutcomeEvidence;  // outcome_guard.h
struct VerdictRecord;    // verdict_record.h

class Rollout {
 public:
  static Rollout start(Spec spec, std::string id, uint64_t epoch, const Baseline& baseline, Time now);
  /// After a restart: same step and weight, never higher; evidence empty.
  static Rollout resume(Spec spec, State state, const Baseline& baseline, Time now);
  Rollout(Rollout&&) noexcept;
  Rollout& operator=(Rollout&&) noexcept;
  ~Rollout();

  const State& state() const;
  const Spec& spec() const;
  Report report() const;
  /// The guard that decided, or the one nearest to it, with everything needed to decide again.
  VerdictRecord explain() const;

  // Each returns true if the state changed.
  bool observe(const Observation& observation, Time now);
  bool observe(const ShadowPair& pair, Time now);
  bool observe(const ResourceRound& round, Time now);
  /// The answer of a Prometheus query; nothing: the query failed, had no fresh answer or NaN. `guard` is an index into the specification's.
  bool observe_sample(size_t guard, std::optional<double> value, Time now);
  /// Reported outcomes (Judge::observe_outcomes).
  bool observe_outcomes(size_t guard, const OutcomeEvidence& evidence, Time now);
  bool tick(Time now);  ///< timers: step duration, bake; call a few times a second

  /// The gate it is paused at, until confirm() or a person's resume(): "confirm-rollout", "confirm-traffic-increase", "confirm-promotion"
  /// or nothing.
  std::string_view awaits() const;
  /// The confirmation from outside; kFailedPrecondition if it does not wait at that gate.
  Status confirm(std::string_view gate, Time now);

  /// The gates from now on; a gate it already waits at stays.
  void set_gates(const Gates& gates);

  // For several routers that share a rollout (replicas.h).
  /// False: nothing here raises the weight or ends the rollout well: no step advances, no silence ends, no bake. Verdicts still apply.
  void let_rise(bool allowed);
  /// False: another rollout of the service runs, so this one does not go to 100 % by itself.
  void let_promote(bool allowed);
  /// The largest weight that the canary's healthy endpoints carry. No step beyond it begins.
  void set_capacity(uint32_t weight_ppm);
  /// Its canary is stable already: the promotion that another router began is complete. False: it was not being promoted.
  bool end_promotion(Time now);
  /// Adopts the state that another router reached. Evidence against the canary stays; certificates start again if the step differs.
  void follow(State state);
  /// A verdict that another router reached.
  bool trip(std::string cause, std::string reason);

  // Commands. kFailedPrecondition names the phase if it does not allow the command.
  Status pause(Time now);
  Status resume(Time now);                           ///< from Paused or Inconclusive; also passes a manual gate
  Status promote(Time now);                          ///< at once to 100 %, without further evidence
  Status abort(std::string reason, Time now);        ///< to 0; idempotent once rolled back
  Status set_weight(uint32_t weight_ppm, Time now);  ///< manual; pauses the automatic steps until resume()

 private:
  explicit Rollout(std::unique_ptr<Machine> machine);
  std::unique_ptr<Machine> machine_;
};

}  // namespace serin::rollout
