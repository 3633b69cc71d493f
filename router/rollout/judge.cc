// judge.cc: one answer in, at most one verdict out.
//
// An answer passes four gates: does it say anything (Outcome), is it a unit of its own (Units), which guard is it an event of, and which
// certificate does it feed. Every guard is a supermartingale in the filtration of its own events, so the guards are never added up: the
// first to reach its own trip value rolls back and names the reason.

#include "router/rollout/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "router/rollout/alpha_budget.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

bool is_failure(Outcome outcome) { return outcome == Outcome::kError || outcome == Outcome::kRejected || outcome == Outcome::kDeadline; }

std::string at_share(double share) { return fmt::format("at {:.3g} % of traffic", 100 * share); }

EventGuard make_guard(const Guard& guard, const char* name, double share) {
  return EventGuard(name, guard.tolerate_ratio, trip_value(guard.false_rollback, share));
}

size_t count_thresholds(const Guard& guard) { return guard.latency_max.size() + (guard.errors_max ? 1 : 0); }

}  // namespace

Judge::Judge(const Spec& spec, const Baseline& baseline)
    : certify_(spec.certify),
      compare_outputs_(spec.guard.compare != Guard::Compare::kOff),
      alpha_(spec.guard.false_rollback),
      units_(spec.guard.unit),
      pair_units_(spec.guard.unit),
      err_(make_guard(spec.guard, "err", kErrorShare)),
      rej_(make_guard(spec.guard, "rej", kRejectedShare)),
      dl_(make_guard(spec.guard, "dl", kDeadlineShare)),
      latency_(spec.guard, baseline),
      shadow_(spec.guard.max_disagreement),
      errors_certificate_(0, 0.5),
      latency_certificate_(0, 0.5),
      agreement_certificate_(spec.guard.max_disagreement, spec.certify.confidence),
      max_disagreement_(spec.guard.max_disagreement) {
  const Guard& guard = spec.guard;
  const size_t count = count_thresholds(guard);
  const auto add = [&](const std::string& name, std::string text, double p0, std::chrono::nanoseconds latency) {
    thresholds_.push_back({ThresholdGuard({.name = "threshold:" + name,
                                           .text = std::move(text),
                                           .p0 = p0,
                                           .trip_value = trip_value(alpha_, kThresholdShare / static_cast<double>(count)),
                                           .ask_stable = guard.when_stable_breaches_too == Guard::Breach::kHold}),
                           latency});
  };
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

std::optional<Verdict> Judge::observe(const Observation& observation, std::chrono::milliseconds at) {
  const bool canary = observation.arm == Arm::kCanary;
  (canary ? canary_answers_ : stable_answers_) += 1;
  step_canary_answers_ += canary;
  if (!canary && observation.outcome == Outcome::kOk) latency_.fill_baseline(observation.latency);

  const auto unit = units_.weigh(observation);
  if (!unit || observation.outcome == Outcome::kNeutral) return std::nullopt;
  if (unit->representative) certify(observation);
  if (auto verdict = judge_failure(observation, *unit, at)) return verdict;
  if (auto verdict = judge_latency(observation, *unit, at)) return verdict;
  return thresholds_.empty() ? std::nullopt : judge_thresholds(observation, *unit);
}

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

std::optional<Verdict> Judge::judge_failure(const Observation& observation, const Unit& unit, std::chrono::milliseconds at) {
  EventGuard* guard = guard_of(observation.outcome);
  if (guard == nullptr || !guard->observe(observation.arm, unit, at)) return std::nullopt;
  return conclude(*guard, at_share(unit.share));
}

std::optional<Verdict> Judge::judge_latency(const Observation& observation, const Unit& unit, std::chrono::milliseconds at) {
  if (observation.outcome != Outcome::kOk) return std::nullopt;
  const EventGuard* guard = latency_.observe(observation.arm, observation.latency, unit, at);
  if (guard == nullptr) return std::nullopt;
  return conclude(*guard, at_share(unit.share));
}

std::optional<Verdict> Judge::judge_thresholds(const Observation& observation, const Unit& unit) {
  if (observation.outcome == Outcome::kRejected) return std::nullopt;  // a refused client is neither slow nor an error of the server
  const bool failed = observation.outcome == Outcome::kError || observation.outcome == Outcome::kDeadline;
  const bool timed = observation.outcome != Outcome::kError;
  for (UserThreshold& threshold : thresholds_) {
    const bool on_errors = threshold.latency_limit.count() == 0;
    if (!on_errors && !timed) continue;
    const bool bad = on_errors ? failed : failed || observation.latency > threshold.latency_limit;
    if (!threshold.guard.observe(observation.arm, bad, unit, observation.weight_ppm >= kAll)) continue;
    decided_by_ = threshold.guard.name();
    return threshold.guard.verdict();
  }
  return std::nullopt;
}

void Judge::certify(const Observation& observation) {
  const bool failed = is_failure(observation.outcome);
  if (observation.arm == Arm::kStable) return stable_failures_.observe(failed);
  errors_certificate_.observe(failed, stable_failures_);
  if (failed) return;
  constexpr double kStableRate = 0.01;  // of answers beyond stable's p99, by definition
  if (const auto slow = latency_.exceeds_p99(observation.latency)) latency_certificate_.observe(*slow, kStableRate, kStableRate);
}

/// A pair is two attempts, each drawn with weight 1/2; event_guard.cc has the proof. While the canary has a weight of its own, stable's half is
/// already counted as a drawn attempt, so a pair is news only in a step that draws nothing to the canary.
const EventGuard* Judge::judge_pair(const ShadowPair& pair, std::chrono::milliseconds at) {
  if (!shadow_step_) return nullptr;
  const auto stable = pair_units_.weigh(
      {.arm = Arm::kStable, .weight_ppm = kAll / 2, .outcome = pair.stable, .batch = pair.stable_batch, .endpoint = pair.stable_endpoint});
  const auto canary = pair_units_.weigh({.arm = Arm::kCanary,
                                         .weight_ppm = kAll / 2,
                                         .outcome = pair.canary,
                                         .batch = pair.canary_batch,
                                         .endpoint = pair.canary_endpoint,
                                         .answered = pair.canary_answered});
  for (EventGuard* guard : {&err_, &rej_, &dl_}) {
    const auto if_bad = [&](const std::optional<Unit>& unit, Outcome outcome) { return guard_of(outcome) == guard ? unit : std::nullopt; };
    if (guard->observe_pair(if_bad(stable, pair.stable), if_bad(canary, pair.canary), at)) return guard;
  }
  return nullptr;
}

std::optional<Verdict> Judge::observe(const ShadowPair& pair, std::chrono::milliseconds at) {
  ++shadow_answers_;
  ++step_shadow_answers_;
  if (const EventGuard* tripped = judge_pair(pair, at)) return conclude(*tripped, "in shadow pairs");
  if (!compare_outputs_) {
    agreement_certificate_.observe(is_failure(pair.canary) && !is_failure(pair.stable));
    return std::nullopt;
  }
  if (!pair.comparable) return std::nullopt;
  ++shadow_compared_;
  shadow_mismatches_ += pair.mismatch;
  agreement_certificate_.observe(pair.mismatch);
  shadow_.observe(pair.mismatch);
  const double trip = trip_value(alpha_, kShadowShare);
  if (shadow_.e() < trip) return std::nullopt;
  decided_by_ = "shadow";
  return Verdict{"shadow",
                 fmt::format("shadow: {} of {} answers differ from stable's, more than {:.4g} % allowed; e-value 2^{:.1f} over 2^{:.1f}",
                             shadow_mismatches_, shadow_compared_, 100 * max_disagreement_, std::log2(shadow_.e()), std::log2(trip))};
}

Verdict Judge::conclude(const EventGuard& guard, std::string_view where) {
  decided_by_ = guard.name();
  return guard.verdict(where);
}

bool Judge::certified() const {
  if (shadow_step_) return agreement_certificate_.certified();
  return errors_certificate_.certified() && latency_certificate_.certified();
}

std::string Judge::held() const {
  for (const UserThreshold& threshold : thresholds_)
    if (threshold.guard.holding())
      return fmt::format("held: {} is breached, but the canary is not shown to be worse than stable", threshold.guard.name());
  return "";
}

const EventGuard& Judge::leading_guard() const {
  std::vector<const EventGuard*> guards{&err_, &rej_, &dl_};
  for (const EventGuard& guard : latency_.guards()) guards.push_back(&guard);
  for (const EventGuard* guard : guards)
    if (guard->name() == decided_by_) return *guard;
  const auto missing = [](const EventGuard* guard) {
    const Evidence evidence = guard->evidence();
    return evidence.bits_to_trip - evidence.bits;
  };
  return **std::ranges::min_element(guards, {}, missing);
}

void Judge::fill(Report& report) const {
  report.stable_answers = stable_answers_;
  report.canary_answers = canary_answers_;
  report.shadow_answers = shadow_answers_;
  report.step_canary_answers = step_canary_answers_;
  for (const EventGuard* guard : {&err_, &rej_, &dl_}) report.evidence.push_back(guard->evidence());
  for (const EventGuard& guard : latency_.guards()) report.evidence.push_back(guard.evidence());
  if (compare_outputs_)
    report.evidence.push_back({.guard = "shadow",
                               .bits = std::log2(shadow_.e()),
                               .bits_to_trip = std::log2(trip_value(alpha_, kShadowShare)),
                               .canary_events = shadow_mismatches_});
  for (const UserThreshold& threshold : thresholds_) report.evidence.push_back(threshold.guard.evidence());
  if (shadow_step_) {
    report.certificates.push_back({"shadow", agreement_certificate_.progress()});
  } else {
    report.certificates.push_back({fmt::format("errors +{:.3g} %", 100 * errors_certificate_.margin()), errors_certificate_.progress()});
    report.certificates.push_back({fmt::format("latency +{:.3g} %", 100 * latency_certificate_.margin()), latency_certificate_.progress()});
  }
  const EventGuard& leading = leading_guard();
  report.leading_guard = decided_by_.empty() ? leading.name() : decided_by_;
  if (report.leading_guard == leading.name()) report.events = leading.events();
  report.note = held();
  if (report.note.empty() && latency_.baseline_missing() > 0)
    report.note = fmt::format("latency is not judged yet: {} more of stable's answers needed", latency_.baseline_missing());
}

}  // namespace serin::rollout
