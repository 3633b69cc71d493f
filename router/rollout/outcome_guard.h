// outcome_guard.h: Judges the outcomes that users report for a rollout ("outcomes: {metric, margin}").
//
// Outcomes may come hours after the answers. So the process (outcome_process.h) is where reports are counted, and survives a restart there; the
// guard takes its latest state.
#pragma once

#include <chrono>
#include <string>

#include "router/rollout/event_guard.h"
#include "router/rollout/mixture_state.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

/// All outcomes of requests that a rollout drew.
struct OutcomeEvidence {
  MixtureState worse;
  double difference = 0;  ///< the canary's mean minus stable's, in the unit of the metric
  bool balanced = true;   ///< false: reports are missing more often for one version, so that they prove nothing
};

class OutcomeGuard {
 public:
  OutcomeGuard(const OutcomeLimit& asked, double trip_value) : asked_(asked), name_("outcome:" + asked.metric), trip_value_(trip_value) {}

  /// The evidence so far. Returns whether to roll back.
  bool observe(const OutcomeEvidence& evidence, std::chrono::milliseconds at);
  /// The reason that the steps hold: reports are missing. Empty: they do not hold.
  std::string held() const;

  const std::string& name() const { return name_; }
  Evidence evidence() const;
  Verdict verdict() const;
  VerdictRecord record() const;

 private:
  OutcomeLimit asked_;
  std::string name_;
  double trip_value_;
  OutcomeEvidence latest_;
  std::chrono::milliseconds at_{0};
};

}  // namespace serin::rollout
