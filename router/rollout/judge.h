// judge.h: All evidence of one rollout: the guards that may roll it back and the certificates that let its steps advance.
//
// It knows no phases and sets no weights: rollout.cc does.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/certificate.h"
#include "router/rollout/cold_start.h"
#include "router/rollout/event_guard.h"
#include "router/rollout/few_guard.h"
#include "router/rollout/key_gate.h"
#include "router/rollout/latency_guards.h"
#include "router/rollout/outcome_guard.h"
#include "router/rollout/output_guards.h"
#include "router/rollout/representative.h"
#include "router/rollout/resource_guards.h"
#include "router/rollout/sample_guard.h"
#include "router/rollout/slice_guards.h"
#include "router/rollout/spec.h"
#include "router/rollout/threshold_guard.h"

namespace serin::rollout {

class Judge {
 public:
  Judge(const Spec& spec, const Baseline& baseline);

  /// Starts new certificates. weight_ppm is the canary's during the step; a mirroring step requires agreement instead.
  void begin_step(uint32_t weight_ppm, bool shadow_step);

  /// One answer, `age` after the start of the rollout. A verdict means: roll back.
  std::optional<Verdict> observe(const Observation& observation, std::chrono::nanoseconds age);
  std::optional<Verdict> observe(const ShadowPair& pair, std::chrono::milliseconds at);
  /// The resources of the endpoints, while the canary has that weight.
  std::optional<Verdict> observe(const ResourceRound& round, uint32_t weight_ppm, std::chrono::milliseconds at);
  /// The answer of a user's query; `guard` is its index in the specification.
  std::optional<Verdict> observe_sample(size_t guard, std::optional<double> value, std::chrono::milliseconds at);
  /// The reported outcomes of requests that the rollout drew; `guard` is an index into the specification's (outcome_guard.h).
  std::optional<Verdict> observe_outcomes(size_t guard, const OutcomeEvidence& evidence, std::chrono::milliseconds at);

  bool certified() const;
  /// The reason that the steps hold although nothing is wrong with the canary alone; empty: they do not hold.
  std::string held(std::chrono::milliseconds at) const;
  /// Whether the canary has answered at all in this step.
  bool has_step_answers() const { return (shadow_step_ ? step_shadow_answers_ : step_canary_answers_) > 0; }
  /// Fills everything in the report except the state.
  void fill(Report& report, std::chrono::milliseconds at) const;
  /// The guard that decided; before that, the one nearest to it.
  VerdictRecord record() const;

 private:
  std::optional<Verdict> judge_answer(const Observation& observation, std::chrono::nanoseconds age);
  std::optional<Verdict> judge_unit(const Observation& observation, const Unit& unit, std::chrono::milliseconds at);
  bool is_cold(const Observation& observation) const;
  std::optional<Verdict> judge_failure(const Observation& observation, const Unit& unit, std::chrono::milliseconds at);
  std::optional<Verdict> judge_latency(const Observation& observation, const Unit& unit, std::chrono::milliseconds at);
  std::optional<Verdict> judge_output(const Observation& observation, const Unit& unit, std::chrono::milliseconds at);
  std::optional<Verdict> judge_thresholds(const Observation& observation, const Unit& unit, std::chrono::milliseconds at);
  std::optional<Verdict> judge_cohort(const Observation& observation, std::chrono::milliseconds at);
  const EventGuard* judge_pair(const ShadowPair& pair, std::chrono::milliseconds at);
  const EventGuard* judge_settled_pairs(const Observation& canary, std::chrono::milliseconds at);
  std::optional<Verdict> judge_disagreement(const ShadowPair& pair, std::chrono::milliseconds at);
  void remember_difference(const ShadowPair& pair, std::chrono::milliseconds at);
  void certify(const Observation& observation, std::chrono::milliseconds at);
  EventGuard* guard_of(Outcome outcome);
  std::optional<Verdict> conclude(Verdict verdict, std::chrono::milliseconds at);
  bool is_dry(const std::string& guard) const;
  std::vector<Evidence> evidence() const;
  std::string nearest() const;  // the comparison with the least evidence missing
  template <class Visitor>
  void each_comparison(Visitor&& visit) const;
  template <class Visitor>
  void each_guard(Visitor&& visit) const;

  struct UserThreshold {
    ThresholdGuard guard;
    std::chrono::nanoseconds latency_limit{0};  // 0: on errors
    KeyGate gate;
  };
  static std::optional<bool> is_bad(const UserThreshold& threshold, const Observation& observation);

  Certify certify_;
  bool compare_outputs_, copies_asked_;
  double alpha_;
  std::vector<std::string> dry_run_;

  Units units_, pair_units_;
  KeyGate failures_;
  EventGuard err_, rej_, dl_;
  ColdStart cold_;
  LatencyGuards latency_;
  SliceGuards slices_;
  OutputGuards output_;
  ThresholdGuard shadow_;
  std::optional<FewGuard> few_;  // none: the user's limit is all there is
  std::vector<UserThreshold> thresholds_;
  std::vector<SampleGuard> samples_;
  std::vector<OutcomeGuard> outcomes_;
  ResourceGuards resources_;

  StableRate stable_failures_, stable_slow_;
  bool shadow_step_ = false;
  RateCertificate errors_certificate_, latency_certificate_;
  AgreementCertificate agreement_certificate_;

  uint64_t stable_answers_ = 0, canary_answers_ = 0, shadow_answers_ = 0, step_canary_answers_ = 0, step_shadow_answers_ = 0;
  ShadowSummary differences_;
  uint64_t measured_ = 0;  // pairs whose differences are known
  double max_disagreement_;
  std::string decided_by_;                       // the guard of the verdict
  std::map<std::string, DryRunTrip> dry_trips_;  // by guard
};

}  // namespace serin::rollout
