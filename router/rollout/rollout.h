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
#include "router/rollout/spec.h"
#include "runtime/base/histogram.h"
#include "runtime/base/result.h"

namespace serin::rollout {

using Time = std::chrono::steady_clock::time_point;  ///< monotonic: a stepped wall clock affects no verdict

enum class Phase : uint8_t { kProgressing, kPaused, kInconclusive, kPromoting, kBaking, kSucceeded, kRolledBack };
std::string_view phase_name(Phase phase);  ///< "Progressing", ...: Argo's and Flagger's words
std::optional<Phase> find_phase(std::string_view name);
inline bool is_over(Phase phase) { return phase == Phase::kSucceeded || phase == Phase::kRolledBack; }

/// The state that must survive a restart. Evidence need not: it starts again from 1, which is safe (it only forgets evidence against the
/// canary).
struct State {
  std::string id;  ///< "digits-7"
  std::string service, stable, canary;
  uint64_t epoch = 0;  ///< rises with every rollout of the service and every manual change of weights
  Phase phase = Phase::kProgressing;
  int step = 0;             ///< index into the specification's steps
  uint32_t weight_ppm = 0;  ///< of the canary
  uint32_t shadow_ppm = 0;  ///< of stable's requests mirrored to the canary
  /// While it waits at a gate, that gate ("confirm-promotion"). After a verdict: "err", "rej", "dl", "lat", "shadow", "threshold:errors",
  /// "abort", "promoted", ...
  std::string cause;
  std::string reason;  ///< one sentence for display
};

/// One line of evidence for status, watch and /metrics.
struct Evidence {
  std::string guard;        ///< "err", "lat_p99", "shadow", "threshold:errors"
  double bits = 0;          ///< log2 of the e-value
  double bits_to_trip = 0;  ///< log2 of the threshold
  uint64_t stable_events = 0, canary_events = 0;
  bool dry_run = false;  ///< it only reports the verdict it would have given
};

struct Certificate {
  std::string margin;   ///< "errors +1.0 %", "latency +2.0 %", "shadow"
  double progress = 0;  ///< 0..1; 1: certified
};

/// One event that moved a guard: verdicts consist of these (verdict_record.h).
struct DecidingEvent {
  std::chrono::milliseconds at{0};  ///< since the rollout started
  Arm arm = Arm::kStable;
  /// The canary's share of such answers at the draw, which chance alone explains. Of a sample: its value.
  double share = 0;
  double bits = 0;           ///< log2 of the guard's e-value after it
  double units = 1;          ///< pieces of evidence it counted for: the exponent of its likelihood ratio
  bool bad = true;           ///< false: an answer within a limit set by the user
  uint64_t good_before = 0;  ///< canary answers within that limit since the previous event
  bool alone = false;        ///< stable got no traffic: the limit decides alone
};

/// A guard under `dryRun` that would have rolled back.
struct DryRunTrip {
  std::chrono::milliseconds at{0};
  std::string guard, reason;
};

/// A mirrored request whose two answers differ.
struct Disagreement {
  std::chrono::milliseconds at{0};       ///< since the rollout started
  std::optional<Difference> difference;  ///< nothing: the answers have no output of the same shape to compare
};

/// The answers to mirrored requests, compared with stable's.
struct ShadowSummary {
  uint64_t compared = 0, mismatches = 0, labels = 0;  ///< labels: pairs with different labels, in every compare mode
  double largest_absolute = 0, largest_relative = 0;  ///< over all elements
  double mean_score = 0;                              ///< canary's highest score minus stable's
  std::vector<Disagreement> examples;                 ///< the latest, oldest first, at most 10
};

struct Report {
  State state;
  uint64_t stable_answers = 0, canary_answers = 0, shadow_answers = 0;  ///< in this rollout
  uint64_t step_canary_answers = 0;
  std::vector<Evidence> evidence;
  std::vector<Certificate> certificates;  ///< of the current step
  std::string leading_guard;              ///< the one that decided; before a verdict, the nearest one
  std::vector<DecidingEvent> events;      ///< its latest events, oldest first, at most 128
  std::vector<DryRunTrip> dry_run;     ///< the first of each guard
  ShadowSummary shadow;
  double step_seconds = 0;  ///< since the step began
  /// Until it ends, at its rate so far; nothing: it waits for a person, or the time is not known yet.
  std::optional<double> step_eta_seconds;
  std::string note;  ///< other reasons that the steps hold, for display; may be empty
};

/// Stable's latencies before the canary got any traffic; taus are taken from it. With fewer samples than the specification's
/// `latency.baseline`, latency is not judged until enough of stable's answers have been seen during the rollout.
using Baseline = LatencyHistogram;

struct VerdictRecord;  // verdict_record.h

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
  /// The answer of a Prometheus query; nothing: the query failed, had no fresh answer or NaN. `guard` is an index into the specification's.
  bool observe_sample(size_t guard, std::optional<double> value, Time now);
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
  struct Machine;
  explicit Rollout(std::unique_ptr<Machine> machine);
  std::unique_ptr<Machine> machine_;
};

}  // namespace serin::rollout
