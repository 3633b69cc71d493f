// judge_report.cc: reports the state of the judge, for users, for metrics and for the verdict's record.

#include <fmt/format.h>

#include <algorithm>

#include "router/rollout/judge.h"

namespace serin::rollout {
namespace {

/// The word under which `dryRun` names a guard.
std::string_view dry_run_word(std::string_view guard) {
  if (guard.starts_with("lat_")) return "latency";
  if (guard.starts_with("out_")) return "output";
  if (guard.starts_with("threshold:")) return "thresholds";
  if (guard.starts_with("prometheus:")) return "prometheus";
  return guard;
}

}  // namespace

bool Judge::is_dry(const std::string& guard) const { return std::ranges::find(dry_run_, dry_run_word(guard)) != dry_run_.end(); }

std::vector<const EventGuard*> Judge::comparisons() const {
  std::vector<const EventGuard*> guards{&err_, &rej_, &dl_};
  for (const EventGuard& guard : latency_.guards()) guards.push_back(&guard);
  return guards;
}

std::vector<Evidence> Judge::evidence() const {
  std::vector<Evidence> lines;
  for (const EventGuard* guard : comparisons()) lines.push_back(guard->evidence());
  for (Evidence& line : output_.evidence()) lines.push_back(std::move(line));
  if (compare_outputs_) lines.push_back(shadow_.evidence());
  for (const UserThreshold& threshold : thresholds_) lines.push_back(threshold.guard.evidence());
  for (const SampleGuard& guard : samples_) lines.push_back(guard.evidence());
  for (Evidence& line : lines) line.dry_run = is_dry(line.guard);
  return lines;
}

VerdictRecord Judge::record() const {
  const auto guards = comparisons();
  for (const EventGuard* guard : guards)
    if (guard->name() == decided_by_) return guard->record();
  for (const ThresholdGuard* guard : output_.guards())
    if (guard->name() == decided_by_) return guard->record();
  if (shadow_.name() == decided_by_) return shadow_.record();
  for (const UserThreshold& threshold : thresholds_)
    if (threshold.guard.name() == decided_by_) return threshold.guard.record();
  for (const SampleGuard& guard : samples_)
    if (guard.name() == decided_by_) return guard.record();
  const auto missing = [](const EventGuard* guard) {
    const Evidence evidence = guard->evidence();
    return evidence.bits_to_trip - evidence.bits;
  };
  return (*std::ranges::min_element(guards, {}, missing))->record();
}

void Judge::fill(Report& report, std::chrono::milliseconds at) const {
  report.stable_answers = stable_answers_;
  report.canary_answers = canary_answers_;
  report.shadow_answers = shadow_answers_;
  report.step_canary_answers = step_canary_answers_;
  report.evidence = evidence();
  if (shadow_step_) {
    report.certificates.push_back({"shadow", agreement_certificate_.progress()});
  } else {
    report.certificates.push_back({fmt::format("errors +{:.3g} %", 100 * errors_certificate_.margin()), errors_certificate_.progress()});
    report.certificates.push_back({fmt::format("latency +{:.3g} %", 100 * latency_certificate_.margin()), latency_certificate_.progress()});
  }
  const VerdictRecord leading = record();
  report.leading_guard = leading.guard;
  report.events = leading.events;
  report.shadow = differences_;
  for (const auto& [guard, verdict] : dry_trips_) report.dry_run.push_back(verdict);
  report.note = held(at);
  if (report.note.empty() && latency_.baseline_missing() > 0)
    report.note = fmt::format("latency is not judged yet: {} more of stable's answers needed", latency_.baseline_missing());
}

}  // namespace serin::rollout
