// judge_report.cc: reports the state of the judge, for users, for metrics and for the verdict's record.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "router/rollout/judge.h"

namespace serin::rollout {
namespace {

/// The word under which `dryRun` names a guard.
std::string_view dry_run_word(std::string_view guard) {
  if (guard.starts_with("lat_")) return "latency";
  if (guard.starts_with("out_")) return "output";
  if (guard == FewGuard::kName) return "shadow";
  if (guard.starts_with("slice:")) return "slices";
  if (guard.starts_with("threshold:")) return "thresholds";
  if (guard.starts_with("prometheus:")) return "prometheus";
  if (guard.starts_with("outcome:")) return "outcomes";
  if (guard.starts_with("res_")) return "resources";
  return guard;
}

}  // namespace

bool Judge::is_dry(const std::string& guard) const { return std::ranges::find(dry_run_, dry_run_word(guard)) != dry_run_.end(); }

template <class Visitor>
void Judge::each_comparison(Visitor&& visit) const {
  for (const EventGuard* guard : {&err_, &rej_, &dl_}) visit(*guard);
  latency_.each(visit);
}

template <class Visitor>
void Judge::each_guard(Visitor&& visit) const {
  each_comparison(visit);
  slices_.each(visit);
  for (const ThresholdGuard* guard : output_.guards()) visit(*guard);
  visit(shadow_);
  if (few_) visit(*few_);
  for (const UserThreshold& threshold : thresholds_) visit(threshold.guard);
  for (const SampleGuard& guard : samples_) visit(guard);
  for (const OutcomeGuard& guard : outcomes_) visit(guard);
  resources_.each(visit);
}

std::vector<Evidence> Judge::evidence() const {
  std::vector<Evidence> lines;
  each_comparison([&](const auto& guard) { lines.push_back(guard.evidence()); });
  for (Evidence& line : output_.evidence()) lines.push_back(std::move(line));
  if (compare_outputs_) lines.push_back(shadow_.evidence());
  if (few_) lines.push_back(few_->evidence());
  for (Evidence& line : slices_.evidence()) lines.push_back(std::move(line));
  for (const UserThreshold& threshold : thresholds_) lines.push_back(threshold.guard.evidence());
  for (const SampleGuard& guard : samples_) lines.push_back(guard.evidence());
  for (const OutcomeGuard& guard : outcomes_) lines.push_back(guard.evidence());
  resources_.each([&](const auto& guard) { lines.push_back(guard.evidence()); });
  for (Evidence& line : lines) line.dry_run = is_dry(line.guard);
  return lines;
}

std::string Judge::nearest() const {
  std::string name;
  double least = std::numeric_limits<double>::infinity();
  each_comparison([&](const auto& guard) {
    const Evidence evidence = guard.evidence();
    const double missing = evidence.bits_to_trip - evidence.bits;
    if (missing >= least) return;
    least = missing;
    name = evidence.guard;
  });
  return name;
}

VerdictRecord Judge::record() const {
  const std::string leading = decided_by_.empty() ? nearest() : decided_by_;
  VerdictRecord record;
  each_guard([&](const auto& guard) {
    if (guard.name() == leading) record = guard.record();
  });
  return record;
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
  constexpr size_t kShown = 128;
  const size_t hidden = leading.events.size() - std::min(kShown, leading.events.size());
  report.events.assign(leading.events.begin() + static_cast<ptrdiff_t>(hidden), leading.events.end());
  report.shadow = differences_;
  report.resources = resources_.lines();
  for (const auto& [guard, verdict] : dry_trips_) report.dry_run.push_back(verdict);
  report.note = held(at);
  if (!report.note.empty()) return;
  if (latency_.missing() > 0)
    report.note = fmt::format("latency is not judged yet: {} more of stable's answers needed", latency_.missing());
  else if (latency_.missing_to_certify() > 0)
    report.note = fmt::format("latency is not certified yet: {} more of stable's answers needed", latency_.missing_to_certify());
}

}  // namespace serin::rollout
