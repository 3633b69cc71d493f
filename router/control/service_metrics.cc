// service_metrics.cc: every name and label of it in one place. What has no end of values (a margin, a reason) is no label.

#include "router/control/service_metrics.h"

#include <iterator>

namespace serin::router {
namespace {

using rollout::Outcome;
using rollout::Phase;

constexpr Phase kPhases[] = {Phase::kProgressing, Phase::kPaused,    Phase::kInconclusive, Phase::kPromoting,
                             Phase::kBaking,      Phase::kSucceeded, Phase::kRolledBack};
constexpr const char* kArms[] = {"stable", "canary"};
constexpr const char* kOutcomeNames[] = {"ok", "error", "rejected", "deadline", "neutral"};
static_assert(static_cast<size_t>(Outcome::kNeutral) + 1 == std::size(kOutcomeNames));
constexpr const char* kResults[] = {"agree", "differ", "not_compared"};

}  // namespace

ServiceMetrics::ServiceMetrics(metrics::Registry& registry, std::string service) : registry_(registry), service_(std::move(service)) {
  for (size_t arm = 0; arm < attempts_.size(); ++arm)
    for (size_t outcome = 0; outcome < kOutcomes; ++outcome)
      attempts_[arm][outcome] = registry.counter("serin_route_attempts_total", "Attempts that were drawn, as the judge sees them.",
                                                 {{"service", service_}, {"arm", kArms[arm]}, {"outcome", kOutcomeNames[outcome]}});
  for (size_t i = 0; i < pairs_.size(); ++i)
    pairs_[i] = registry.counter("serin_route_shadow_pairs_total", "Mirrored requests, by how the canary's answer compares with stable's.",
                                 {{"service", service_}, {"result", kResults[i]}});
  for (const Phase phase : kPhases)
    phases_.push_back(registry.gauge("serin_rollout_phase", "1 for the phase that the current or last rollout is in.",
                                     {{"service", service_}, {"phase", std::string(rollout::phase_name(phase))}}));
  step_ = registry.gauge("serin_rollout_step", "The step that the current or last rollout is in; the first is 1.", {{"service", service_}});
  steps_ = registry.gauge("serin_rollout_steps", "How many steps the current or last rollout has.", {{"service", service_}});
}

void ServiceMetrics::count(const rollout::ShadowPair& pair) { pairs_[!pair.comparable ? 2 : pair.mismatch ? 1 : 0]->add(); }

/// Clients choose the classes of a slice: "slice:country=de:errors" is one label with all others of the slice.
static std::string without_class(const std::string& guard) {
  const size_t value = guard.starts_with("slice:") ? guard.find('=') : std::string::npos;
  return value == std::string::npos ? guard : guard.substr(0, value) + guard.substr(guard.rfind(':'));
}

void ServiceMetrics::count_verdict(const std::string& outcome, const std::string& of) {
  const std::string cause = without_class(of);
  auto& counter = verdicts_[{outcome, cause}];
  if (!counter)
    counter = registry_.counter("serin_rollout_verdicts_total", "Rollouts that have ended.",
                                {{"service", service_}, {"outcome", outcome}, {"cause", cause}});
  counter->add();
}

void ServiceMetrics::show(const rollout::Report& report, size_t steps) {
  for (size_t i = 0; i < std::size(kPhases); ++i) phases_[i]->set(kPhases[i] == report.state.phase ? 1 : 0);
  step_->set(report.state.step + 1);
  steps_->set(static_cast<double>(steps));
  for (const rollout::Evidence& line : report.evidence) {
    const std::string guard = without_class(line.guard);  // of a slice the class that is nearest
    Evidence& gauges = evidence_[guard];
    const metrics::Labels labels{{"service", service_}, {"guard", guard}};
    if (!gauges.bits)
      gauges = {registry_.gauge("serin_route_evidence_bits", "Evidence against the canary: log2 of the guard's e-value.", labels),
                registry_.gauge("serin_route_evidence_trip_bits", "Evidence at which the guard rolls back.", labels)};
    gauges.bits->set(line.bits);
    gauges.trip->set(line.bits_to_trip);
  }
  for (const rollout::Certificate& one : report.certificates) {
    const std::string kind = one.margin.substr(0, one.margin.find(' '));  // "errors" of "errors +1 %": the margin changes with the step
    auto& gauge = certificates_[kind];
    if (!gauge)
      gauge = registry_.gauge("serin_rollout_certificate_progress", "How much of what the step asks for is shown; 1: all.",
                              {{"service", service_}, {"certificate", kind}});
    gauge->set(one.progress);
  }
}

void ServiceMetrics::forget() {
  evidence_.clear();
  certificates_.clear();
}

}  // namespace serin::router
