// judge.cc: takes one answer and gives at most one verdict.
//
// An answer passes four gates: does it say anything (Outcome), is it a unit of its own (Units), which guard is it an event of, and which
// certificate does it feed. Every guard is a supermartingale in the filtration of its own events, so the guards are never added up: the
// first to reach its own trip value rolls back and names the reason.

#include "router/rollout/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/rollout/alpha_budget.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

EventGuard make_guard(const Guard& guard, const char* name, double share) {
  return EventGuard(name, guard.tolerate_ratio, trip_value(guard.false_rollback, share));
}

/// Keys are a gate behind this one.
Guard::Unit unit_of(const Spec& spec) {
  return spec.guard.unit == Guard::Unit::kRequest && !spec.sticky.on() ? Guard::Unit::kRequest : Guard::Unit::kBatch;
}

/// Labels only: with `values` any difference counts already.
bool judges_few(const Guard& guard) { return guard.judge_few && guard.compare == Guard::Compare::kLabel; }

double pairs_share(const Guard& guard) { return judges_few(guard) ? shadow_share(guard) / 2 : shadow_share(guard); }

/// Of the user's own guards that share kThresholdShare.
size_t count_own(const Guard& guard) { return guard.latency_max.size() + (guard.errors_max ? 1 : 0) + guard.outcomes.size(); }

}  // namespace

Judge::Judge(const Spec& spec, const Baseline& baseline)
    : certify_(spec.certify),
      compare_outputs_(spec.guard.compare != Guard::Compare::kOff),
      copies_asked_(spec.guard.shadow_ppm.has_value()),
      alpha_(spec.guard.false_rollback),
      dry_run_(spec.dry_run),
      units_(unit_of(spec)),
      pair_units_(unit_of(spec)),
      err_(make_guard(spec.guard, "err", error_share(spec.guard))),
      rej_(make_guard(spec.guard, "rej", kRejectedShare)),
      dl_(make_guard(spec.guard, "dl", kDeadlineShare)),
      cold_(spec.guard.latency_skip),
      latency_(spec.guard, spec.sticky.on(), baseline),
      slices_(spec.guard, spec.sticky.on()),
      output_(spec.guard),
      shadow_({.name = "shadow",
               .p0 = spec.guard.max_disagreement,
               .trip_value = trip_value(alpha_, pairs_share(spec.guard)),
               .ask_stable = false}),
      resources_(spec.guard),
      errors_certificate_(0, 0.5),
      latency_certificate_(0, 0.5),
      agreement_certificate_(spec.guard.max_disagreement, spec.certify.confidence),
      max_disagreement_(spec.guard.max_disagreement) {
  const Guard& guard = spec.guard;
  if (judges_few(guard)) few_.emplace(trip_value(alpha_, pairs_share(guard)));
  const double own_trip = trip_value(alpha_, kThresholdShare / static_cast<double>(std::max<size_t>(1, count_own(guard))));
  const auto add = [&](const std::string& name, std::string text, double p0, std::chrono::nanoseconds latency) {
    thresholds_.push_back({ThresholdGuard({.name = "threshold:" + name,
                                           .text = std::move(text),
                                           .p0 = p0,
                                           .trip_value = own_trip,
                                           .ask_stable = guard.when_stable_breaches_too == Guard::Breach::kHold}),
                           latency,
                           {}});
  };
  for (const PrometheusGuard& asked : guard.prometheus) samples_.emplace_back(asked);
  for (const OutcomeLimit& asked : guard.outcomes) outcomes_.emplace_back(asked, own_trip);
  if (guard.errors_max) add("errors", fmt::format("errors above {:.4g} %", 100 * *guard.errors_max), *guard.errors_max, {});
  for (const LatencyThreshold& threshold : guard.latency_max) {
    const std::string word = quantile_word(threshold.quantile);
    add(word, fmt::format("{} above {}", word, config::print_duration(threshold.limit)), 1 - threshold.quantile, threshold.limit);
  }
}

void Judge::begin_step(uint32_t weight_ppm, bool shadow_step) {
  const Margins margins = certify_.taper ? tapered_margins(weight_ppm) : Margins{certify_.margin_errors, certify_.margin_latency};
  shadow_step_ = shadow_step;
  errors_certificate_ = RateCertificate(margins.errors, certify_.confidence);
  latency_certificate_ = RateCertificate(margins.latency, certify_.confidence);
  agreement_certificate_ = AgreementCertificate(max_disagreement_, certify_.confidence);
  step_canary_answers_ = 0;
  step_shadow_answers_ = 0;
}

std::optional<Verdict> Judge::observe(const Observation& observation, std::chrono::nanoseconds age) {
  auto verdict = judge_answer(observation, age);
  if (observation.drawn) slices_.name(observation.classes);
  return verdict;
}

std::optional<Verdict> Judge::judge_answer(const Observation& observation, std::chrono::nanoseconds age) {
  const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(age);
  for (const Settled& earlier : units_.settle(observation, age))
    if (auto verdict = judge_unit(earlier.observation, earlier.unit, at)) return verdict;
  if (observation.sign) return std::nullopt;
  const bool canary = observation.arm == Arm::kCanary;
  (canary ? canary_answers_ : stable_answers_) += 1;
  step_canary_answers_ += canary;
  if (!observation.drawn) return judge_cohort(observation, at);
  if (observation.outcome != Outcome::kOk) {
    latency_.not_good(observation, cold_.all_warm(), at);
    slices_.not_good(observation, cold_.all_warm(), at);
  } else if (canary) {
    cold_.answered(observation.endpoint);
  } else {
    latency_.learn(observation, at);
    slices_.learn(observation, at);
  }

  const auto unit = units_.weigh(observation);
  return unit ? judge_unit(observation, *unit, at) : std::nullopt;
}

std::optional<Verdict> Judge::judge_unit(const Observation& observation, const Unit& unit, std::chrono::milliseconds at) {
  if (observation.outcome == Outcome::kNeutral) return std::nullopt;
  const auto counted = failures_.pass(observation, unit, is_failure(observation.outcome));
  if (counted && counted->representative) certify(observation, at);
  if (counted)
    if (auto verdict = judge_failure(observation, *counted, at)) return verdict;
  if (auto verdict = judge_latency(observation, unit, at)) return verdict;
  if (auto verdict = judge_output(observation, unit, at)) return verdict;
  return judge_thresholds(observation, unit, at);
}

bool Judge::is_cold(const Observation& observation) const { return observation.arm == Arm::kCanary && cold_.is_cold(observation.endpoint); }

EventGuard* Judge::guard_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kError: return &err_;
    case Outcome::kRejected: return &rej_;
    case Outcome::kDeadline: return &dl_;
    case Outcome::kOk:
    case Outcome::kNeutral: break;
  }
  return nullptr;
}

/// NaN is found only where bodies are looked at: its share is that of the looks.
std::optional<Verdict> Judge::judge_failure(const Observation& observation, const Unit& unit, std::chrono::milliseconds at) {
  EventGuard* guard = guard_of(observation.outcome);
  if (guard == nullptr) return std::nullopt;
  const bool by_look = observation.output && !observation.output->finite;
  const Unit weighed = by_look ? unit.weighed(observation.output->weight_ppm) : unit;
  if (guard->observe(observation.arm, weighed, at))
    if (auto verdict = conclude(guard->verdict(at_share(weighed.share)), at)) return verdict;
  auto verdict = slices_.failed(observation, weighed, at);
  return verdict ? conclude(*std::move(verdict), at) : std::nullopt;
}

std::optional<Verdict> Judge::judge_latency(const Observation& observation, const Unit& unit, std::chrono::milliseconds at) {
  if (observation.outcome != Outcome::kOk || is_cold(observation)) return std::nullopt;
  if (auto verdict = latency_.observe(observation, unit, cold_.all_warm(), at))
    if (auto concluded = conclude(*std::move(verdict), at)) return concluded;
  auto verdict = slices_.compare(observation, unit, cold_.all_warm(), at);
  return verdict ? conclude(*std::move(verdict), at) : std::nullopt;
}

std::optional<Verdict> Judge::judge_output(const Observation& observation, const Unit& unit, std::chrono::milliseconds at) {
  if (observation.outcome != Outcome::kOk || !observation.output) return std::nullopt;
  auto verdict = output_.observe(observation, unit, at);
  return verdict ? conclude(*std::move(verdict), at) : std::nullopt;
}

/// Nothing where the answer says nothing about this limit: a refused client is neither slow nor an error of the server.
std::optional<bool> Judge::is_bad(const UserThreshold& threshold, const Observation& observation) {
  if (observation.outcome == Outcome::kRejected || observation.outcome == Outcome::kNeutral) return std::nullopt;
  const bool failed = observation.outcome == Outcome::kError || observation.outcome == Outcome::kDeadline;
  if (threshold.latency_limit.count() == 0) return failed;
  if (observation.outcome == Outcome::kError) return std::nullopt;
  return failed || observation.latency > threshold.latency_limit;
}

std::optional<Verdict> Judge::judge_thresholds(const Observation& observation, const Unit& unit, std::chrono::milliseconds at) {
  for (UserThreshold& threshold : thresholds_) {
    const auto bad = is_bad(threshold, observation);
    if (!bad) continue;
    const auto counted = threshold.gate.pass(observation, unit, *bad);
    if (!counted || !threshold.guard.observe(observation.arm, *bad, *counted, observation.weight_ppm >= kAll, at)) continue;
    if (auto verdict = conclude(threshold.guard.verdict(), at)) return verdict;
  }
  return std::nullopt;
}

/// Who was not drawn cannot be compared: a cohort may be ill for reasons of its own.
std::optional<Verdict> Judge::judge_cohort(const Observation& observation, std::chrono::milliseconds at) {
  for (UserThreshold& threshold : thresholds_)
    if (const auto bad = is_bad(threshold, observation)) threshold.guard.observe_cohort(*bad, at);
  return std::nullopt;
}

std::optional<Verdict> Judge::observe_sample(size_t guard, std::optional<double> value, std::chrono::milliseconds at) {
  if (guard >= samples_.size() || !samples_[guard].observe(value, at)) return std::nullopt;
  return conclude(samples_[guard].verdict(), at);
}

std::optional<Verdict> Judge::observe_outcomes(size_t guard, const OutcomeEvidence& evidence, std::chrono::milliseconds at) {
  if (guard >= outcomes_.size() || !outcomes_[guard].observe(evidence, at)) return std::nullopt;
  return conclude(outcomes_[guard].verdict(), at);
}

std::optional<Verdict> Judge::observe(const ResourceRound& round, uint32_t weight_ppm, std::chrono::milliseconds at) {
  for (Verdict& verdict : resources_.observe(round, weight_ppm, at))
    if (auto concluded = conclude(std::move(verdict), at)) return concluded;
  return std::nullopt;
}

void Judge::certify(const Observation& observation, std::chrono::milliseconds at) {
  const bool failed = is_failure(observation.outcome);
  const auto slow = failed || is_cold(observation) ? std::nullopt : latency_.exceeds_p99(observation, at);
  if (observation.arm == Arm::kStable) {
    if (slow) stable_slow_.observe(*slow);
    return stable_failures_.observe(failed);
  }
  errors_certificate_.observe(failed, stable_failures_);
  if (!slow) return;
  constexpr double kKnown = 0.01;  // of answers beyond stable's p99, by definition; more of them once stable is slower than it was
  latency_certificate_.observe(*slow, std::max(kKnown, stable_slow_.lower_bound()), std::max(kKnown, stable_slow_.estimate()));
}

/// A pair is two attempts, each drawn with weight 1/2; event_guard.cc has the proof. While the canary has a weight of its own, stable's half is
/// already counted as a drawn attempt, so a pair is news only in a step that draws nothing to the canary.
const EventGuard* Judge::judge_pair(const ShadowPair& pair, std::chrono::milliseconds at) {
  if (!shadow_step_) return nullptr;
  const Observation canary_half{.arm = Arm::kCanary,
                                .weight_ppm = kAll / 2,
                                .outcome = pair.canary,
                                .batch = pair.canary_batch,
                                .endpoint = pair.canary_endpoint,
                                .ending = pair.canary_ending};
  if (const EventGuard* tripped = judge_settled_pairs(canary_half, at)) return tripped;
  const auto stable = pair_units_.weigh(
      {.arm = Arm::kStable, .weight_ppm = kAll / 2, .outcome = pair.stable, .batch = pair.stable_batch, .endpoint = pair.stable_endpoint});
  const auto canary = pair_units_.weigh(canary_half);
  for (EventGuard* guard : {&err_, &rej_, &dl_}) {
    const auto if_bad = [&](const std::optional<Unit>& unit, Outcome outcome) { return guard_of(outcome) == guard ? unit : std::nullopt; };
    if (guard->observe_pair(if_bad(stable, pair.stable), if_bad(canary, pair.canary), at)) return guard;
  }
  return nullptr;
}

/// Broken halves of earlier pairs. A pair does not say when it was drawn, so that a sign of life is one that comes kOneMoment later.
const EventGuard* Judge::judge_settled_pairs(const Observation& canary, std::chrono::milliseconds at) {
  for (const Settled& earlier : pair_units_.settle(canary, at))
    if (err_.observe_pair(std::nullopt, earlier.unit, at)) return &err_;
  return nullptr;
}

std::optional<Verdict> Judge::observe(const ShadowPair& pair, std::chrono::milliseconds at) {
  ++shadow_answers_;
  ++step_shadow_answers_;
  if (pair.canary == Outcome::kOk) cold_.answered(pair.canary_endpoint);
  if (const EventGuard* tripped = judge_pair(pair, at))
    if (auto verdict = conclude(tripped->verdict("in shadow pairs"), at)) return verdict;
  if (!compare_outputs_) {
    agreement_certificate_.observe(is_failure(pair.canary) && !is_failure(pair.stable));
    return std::nullopt;
  }
  if (!pair.comparable) return std::nullopt;
  remember_difference(pair, at);
  agreement_certificate_.observe(pair.mismatch);
  return judge_disagreement(pair, at);
}

std::optional<Verdict> Judge::judge_disagreement(const ShadowPair& pair, std::chrono::milliseconds at) {
  if (few_ && few_->observe(pair, at))
    if (auto verdict = conclude(few_->verdict(), at)) return verdict;
  // New weights may answer otherwise as they like where nobody asked for a comparison: an embedding has no label.
  // In a step with a weight the canary may be held at 0, where the data path cannot tell such copies from those of a shadow step.
  if (pair.spare || (!shadow_step_ && !copies_asked_)) return std::nullopt;
  auto differs = slices_.differs(pair, at);
  slices_.name(pair.classes);
  if (differs)
    if (auto verdict = conclude(*std::move(differs), at)) return verdict;
  if (!shadow_.observe(Arm::kCanary, pair.mismatch, Unit(0.5), /*alone=*/true, at)) return std::nullopt;
  const Evidence evidence = shadow_.evidence();
  return conclude(
      {"shadow",
       fmt::format("shadow: {} of {} answers differ from stable's, more than {:.4g} % allowed; e-value 2^{:.1f} over 2^{:.1f}",
                   differences_.mismatches, differences_.compared, 100 * max_disagreement_, evidence.bits, evidence.bits_to_trip)},
      at);
}

void Judge::remember_difference(const ShadowPair& pair, std::chrono::milliseconds at) {
  constexpr size_t kExamples = 10;
  ++differences_.compared;
  differences_.mismatches += pair.mismatch;
  if (pair.mismatch) {
    auto& examples = differences_.examples;
    if (examples.size() == kExamples) examples.erase(examples.begin());
    examples.push_back({at, pair.difference});
  }
  if (!pair.difference) return;
  const Difference& difference = *pair.difference;
  ++measured_;
  differences_.labels += difference.label;
  differences_.largest_absolute = std::max(differences_.largest_absolute, difference.absolute);
  differences_.largest_relative = std::max(differences_.largest_relative, difference.relative);
  differences_.mean_score += (difference.score - differences_.mean_score) / static_cast<double>(measured_);
}

/// A verdict of a guard that only rehearses is written down, once, and is none.
std::optional<Verdict> Judge::conclude(Verdict verdict, std::chrono::milliseconds at) {
  if (is_dry(verdict.cause)) {
    dry_trips_.try_emplace(verdict.cause, DryRunTrip{at, verdict.cause, verdict.reason});
    return std::nullopt;
  }
  decided_by_ = verdict.cause;
  return verdict;
}

bool Judge::certified() const {
  if (shadow_step_) return agreement_certificate_.certified();
  return errors_certificate_.certified() && latency_certificate_.certified();
}

std::string Judge::held(std::chrono::milliseconds at) const {
  for (const UserThreshold& threshold : thresholds_)
    if (threshold.guard.holding() && !is_dry(threshold.guard.name()))
      return fmt::format("held: {} is breached, but the canary is not shown to be worse than stable", threshold.guard.name());
  for (const SampleGuard& guard : samples_)
    if (!is_dry(guard.name()))
      if (std::string why = guard.held(at); !why.empty()) return why;
  for (const OutcomeGuard& guard : outcomes_)
    if (!is_dry(guard.name()))
      if (std::string why = guard.held(); !why.empty()) return why;
  if (const auto waits = resources_.held(); waits && !is_dry(waits->cause)) return waits->reason;
  return "";
}

}  // namespace serin::rollout
