// report.h: What a rollout is at: the state that must survive a restart, and the evidence so far.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/observation.h"
#include "router/rollout/phase.h"
#include "router/rollout/resources.h"
#include "runtime/base/histogram.h"

namespace serin::rollout {

using Time = std::chrono::steady_clock::time_point;  ///< monotonic: a stepped wall clock affects no verdict

/// The state that must survive a restart. Evidence need not: it starts again from 1, which is safe (it only forgets evidence against the
/// canary).
struct State {
  std::string id;  ///< "digits-7"
  std::string service, stable, canary;
  uint64_t epoch = 0;  ///< rises with every rollout of the service and every manual change of weights
  Phase phase = Phase::kProgressing;
  int step = 0;             ///< index into the specification's steps
  uint32_t weight_ppm = 0;  ///< of the canary
  uint32_t shadow_ppm = 0;  ///< of stable's requests mirrored to the canary; at most, where the specification says `shadow: auto`
  /// While it waits at a gate, that gate ("confirm-promotion"). After a verdict: "err", "rej", "dl", "lat", "shadow", "threshold:errors",
  /// "abort", "promoted", ...
  std::string cause;
  std::string reason;  ///< one sentence for display
};

/// One line of evidence for status, watch and /metrics.
struct Evidence {
  std::string guard;        ///< "err", "lat_rank", "shadow", "threshold:errors"
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
  uint8_t rank = 0;          ///< of a latency: how many of stable's limits it exceeds, or RankProcess::kFailed
  bool one_sided = false;    ///< a fast answer is no evidence, because the share is not known exactly (rank_process.h)
  std::optional<bool> same;  ///< ShadowPair::same, where the guard asked
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
  std::vector<DryRunTrip> dry_run;        ///< the first of each guard
  ShadowSummary shadow;
  std::vector<ResourceLine> resources;  ///< empty: they are not judged
  double step_seconds = 0;              ///< since the step began
  /// Until it ends, at its rate so far; nothing: it waits for a person, or the time is not known yet.
  std::optional<double> step_eta_seconds;
  std::string note;  ///< other reasons that the steps hold, for display; may be empty
};

/// Stable's latencies before the canary got any traffic; taus are taken from it. With fewer samples than the specification's
/// `latency.baseline`, latency is not judged until enough of stable's answers have been seen during the rollout.
using Baseline = LatencyHistogram;

}  // namespace serin::rollout
