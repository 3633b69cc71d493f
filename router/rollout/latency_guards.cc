// latency_guards.cc: compares the latencies of both arms. The thresholds tau are frozen before they judge anything, so both arms are
// measured alike. The attribution argument of event_process.cc applies to "took longer than tau" as to any other bad event. Stable's event
// is L > tau; the canary's is L > (1 + slack) tau + floor, because a better model that is 2 ms slower is no incident.
//
// Four quantiles, because a shift of the body shows at p50 within a few dozen answers while a new tail shows only at p99 and beyond.

#include "router/rollout/latency_guards.h"

#include <cmath>
#include <string>

#include "router/rollout/alpha_budget.h"

namespace serin::rollout {
namespace {

EventGuard make_guard(const Guard& guard, const char* name) {
  return EventGuard(name, guard.tolerate_ratio, trip_value(guard.false_rollback, kLatencyShare));
}

}  // namespace

LatencyGuards::LatencyGuards(const Guard& guard, const Baseline& baseline)
    : slack_(guard.latency_slack),
      floor_(guard.latency_floor),
      wanted_(guard.latency_baseline),
      skip_(guard.latency_skip),
      baseline_(baseline),
      guards_{make_guard(guard, "lat_p50"), make_guard(guard, "lat_p90"), make_guard(guard, "lat_p99"), make_guard(guard, "lat_2xp99")} {
  if (baseline_missing() == 0) freeze();
}

uint64_t LatencyGuards::baseline_missing() const { return ready() || baseline_.count() >= wanted_ ? 0 : wanted_ - baseline_.count(); }

void LatencyGuards::fill_baseline(std::chrono::nanoseconds latency) {
  if (ready()) return;
  baseline_.record(latency);
  if (baseline_missing() == 0) freeze();
}

void LatencyGuards::freeze() {
  const auto with_allowance = [this](std::chrono::nanoseconds tau) {
    return Tau{tau, floor_ + std::chrono::nanoseconds(std::llround((1 + slack_) * static_cast<double>(tau.count())))};
  };
  const auto p99 = baseline_.quantile(0.99);
  taus_ = {with_allowance(baseline_.quantile(0.5)), with_allowance(baseline_.quantile(0.9)), with_allowance(p99), with_allowance(2 * p99)};
}

const EventGuard* LatencyGuards::observe(const Observation& observation, const Unit& unit, std::chrono::milliseconds at) {
  if (!ready()) return nullptr;
  const bool canary = observation.arm == Arm::kCanary;
  if (canary && skip_ > 0) {
    --skip_;
    return nullptr;
  }
  const EventGuard* tripped = nullptr;
  for (size_t k = 0; k < taus_.size(); ++k) {
    const bool slow = observation.latency > (canary ? taus_[k].canary : taus_[k].stable);
    if (!slow && !observation.key) break;  // the taus rise
    const auto counted = gates_[k].pass(observation, unit, slow);
    if (slow && counted && guards_[k].observe(observation.arm, *counted, at) && tripped == nullptr) tripped = &guards_[k];
  }
  return tripped;
}

std::optional<bool> LatencyGuards::exceeds_p99(std::chrono::nanoseconds latency) const {
  if (!ready() || skip_ > 0) return std::nullopt;
  return latency > taus_[kP99].canary;
}

}  // namespace serin::rollout
