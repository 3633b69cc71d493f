// rollout.h: one rollout, from start to its verdict: the specification, the state that must survive a restart, and the judge.
//
// Pure: knows no sockets, no clock, no store. The caller (router/controller) feeds it observations, ticks and commands with the time,
// and when `changed` comes back true applies the new weights (a fall at once, a rise after it was persisted) and persists the state.
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

using Time = std::chrono::steady_clock::time_point;  ///< monotonic: a stepped wall clock judges nobody

enum class Phase : uint8_t { kProgressing, kPaused, kInconclusive, kPromoting, kBaking, kSucceeded, kRolledBack };
std::string_view phase_name(Phase phase);  ///< "Progressing", ...: Argo's and Flagger's words
std::optional<Phase> find_phase(std::string_view name);
inline bool is_over(Phase phase) { return phase == Phase::kSucceeded || phase == Phase::kRolledBack; }

/// What must survive a restart. Evidence does not: it starts again from 1, which is safe (it only forgets bad news of the canary).
struct State {
  std::string id;  ///< "digits-7"
  std::string service, stable, canary;
  uint64_t epoch = 0;  ///< rises with every rollout of the service and every change of weights by hand
  Phase phase = Phase::kProgressing;
  int step = 0;             ///< index into the specification's steps
  uint32_t weight_ppm = 0;  ///< of the canary
  uint32_t shadow_ppm = 0;  ///< of stable's requests mirrored to the canary
  /// While it waits at a gate, that gate ("confirm-promotion"). Of the verdict: "err", "rej", "dl", "lat", "shadow", "threshold:errors", "abort", "promoted", ...
  std::string cause;
  std::string reason;  ///< the sentence for people
};

/// One line of evidence for status, watch and /metrics.
struct Evidence {
  std::string guard;        ///< "err", "lat_p99", "shadow", "threshold:errors"
  double bits = 0;          ///< log2 of the e-value
  double bits_to_trip = 0;  ///< log2 of the threshold
  uint64_t stable_events = 0, canary_events = 0;
  bool dry_run = false;  ///< it only says what it would have done
};

struct Certificate {
  std::string margin;   ///< "errors +1.0 %", "latency +2.0 %", "shadow"
  double progress = 0;  ///< 0..1; 1: certified
};

/// One event that moved a guard: what a verdict is made of (verdict_record.h).
struct DecidingEvent {
  std::chrono::milliseconds at{0};  ///< since the rollout started
  Arm arm = Arm::kStable;
  double share = 0;          ///< the canary's share of such answers when it was drawn: what chance alone explains. Of a sample: its value
  double bits = 0;           ///< log2 of the guard's e-value after it
  double units = 1;          ///< how many pieces of evidence it counted for: the exponent of its likelihood ratio
  bool bad = true;           ///< false: an answer within a limit of the user's
  uint64_t good_before = 0;  ///< canary answers within that limit since the event before
  bool alone = false;        ///< stable got no traffic: the limit decides by itself
};

/// A guard under `dryRun` that would have rolled back.
struct DryRunVerdict {
  std::chrono::milliseconds at{0};
  std::string guard, reason;
};

/// A mirrored request whose two answers differ.
struct Disagreement {
  std::chrono::milliseconds at{0};       ///< since the rollout started
  std::optional<Difference> difference;  ///< nothing: the answers have no output of one shape to be compared
};

/// What the answers to mirrored requests said, beside those of stable.
struct ShadowSummary {
  uint64_t compared = 0, mismatches = 0, labels = 0;  ///< labels: pairs whose label differs, whatever is compared
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
  std::string leading_guard;              ///< the one that decided; before a verdict, the one nearest to it
  std::vector<DecidingEvent> events;      ///< its latest events, oldest first, at most 128
  std::vector<DryRunVerdict> dry_run;     ///< the first of each guard
  ShadowSummary shadow;
  double step_seconds = 0;                 ///< since the step began
  std::optional<double> step_eta_seconds;  ///< until it is over, at its pace so far; nothing: it waits for a person, or nobody knows yet
  std::string note;                        ///< what holds the steps beside the certificates, for people; may be empty
};

/// Stable's latencies before the canary got any traffic; taus are taken from it. Fewer than the specification's `latency.baseline` samples:
/// latency is not judged until enough of stable's answers have been seen during the rollout.
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
  /// The guard that decided, or the one nearest to it, with all that it takes to decide again.
  VerdictRecord explain() const;

  // Each returns true where the state changed.
  bool observe(const Observation& observation, Time now);
  bool observe(const ShadowPair& pair, Time now);
  /// What a Prometheus query answered; nothing: it could not be asked, had no fresh answer or NaN. `guard` is an index into the specification's.
  bool observe_sample(size_t guard, std::optional<double> value, Time now);
  bool tick(Time now);  ///< timers: step duration, bake; call a few times a second

  /// The gate it is paused at, until confirm() or a person's resume(): "confirm-rollout", "confirm-traffic-increase", "confirm-promotion" or nothing.
  std::string_view awaits() const;
  /// The yes from outside; kFailedPrecondition where it does not wait at that gate.
  Status confirm(std::string_view gate, Time now);

  /// Those that are asked from now on; one that it waits at already stays.
  void set_gates(const Gates& gates);

  // Where several routers share a rollout (router/replicas/replicas.h).
  /// False: nothing here makes the weight rise or ends the rollout well: no step advances, no silence is over, no bake. Verdicts still act.
  void let_rise(bool allowed);
  /// Goes where somebody else has brought the rollout; the evidence against the canary stays, certificates begin again where the step is another.
  void follow(State state);
  /// A verdict that was come to elsewhere.
  bool trip(std::string cause, std::string reason);

  // Commands. kFailedPrecondition naming the phase where the phase does not allow it.
  Status pause(Time now);
  Status resume(Time now);                           ///< from Paused or Inconclusive; also passes a manual gate
  Status promote(Time now);                          ///< at once to 100 %, no further evidence asked
  Status abort(std::string reason, Time now);        ///< to 0; idempotent once rolled back
  Status set_weight(uint32_t weight_ppm, Time now);  ///< by hand; pauses the automatic steps until resume()

 private:
  struct Machine;
  explicit Rollout(std::unique_ptr<Machine> machine);
  std::unique_ptr<Machine> machine_;
};

}  // namespace serin::rollout
