// latency_guards.cc: compares the latencies of both arms. Stable's event is L > tau; the canary's is L > (1 + slack) tau + floor, because a
// better model that is 2 ms slower is no incident.

#include "router/rollout/latency_guards.h"

#include <algorithm>
#include <string>

#include "router/rollout/alpha_budget.h"

namespace serin::rollout {
namespace {

using std::chrono::milliseconds;

EventGuard make_guard(const Guard& guard, const char* name) {
  return EventGuard(name, guard.tolerate_ratio, trip_value(guard.false_rollback, latency_share(guard) / 4));
}

}  // namespace

LatencyGuards::LatencyGuards(const Guard& guard, bool sticky, const Baseline& baseline)
    : sticky_(sticky),
      certain_(std::min(guard.latency_baseline, kCertain)),
      ranks_(guard, "lat_rank", trip_value(guard.false_rollback, latency_share(guard)), baseline),
      at_limits_{make_guard(guard, "lat_p50"), make_guard(guard, "lat_p90"), make_guard(guard, "lat_p99"), make_guard(guard, "lat_2xp99")} {
}

void LatencyGuards::not_good(const Observation& observation, bool warm, milliseconds at) {
  if (!sticky_) ranks_.not_good(observation, warm, at);
}

std::optional<Verdict> LatencyGuards::observe(const Observation& observation, const Unit& unit, bool warm, milliseconds at) {
  if (!sticky_) {
    if (!ranks_.compare(observation, unit, warm, at)) return std::nullopt;
    return ranks_.guard().verdict(at_share(unit.share));
  }
  const auto* limits = ranks_.limits_of(observation, at);
  const EventGuard* tripped = limits == nullptr ? nullptr : observe_key(observation, *limits, unit, at);
  return tripped == nullptr ? std::nullopt : std::optional(tripped->verdict(at_share(unit.share)));
}

const EventGuard* LatencyGuards::observe_key(const Observation& observation, const LatencyLimits::Limits& limits, const Unit& unit,
                                             milliseconds at) {
  const EventGuard* tripped = nullptr;
  for (size_t k = 0; k < LatencyLimits::kMain.size(); ++k) {
    const bool slow = observation.latency > limits[LatencyLimits::kMain[k]].of(observation.arm);
    const auto counted = gates_[k].pass(observation, unit, slow);
    if (slow && counted && at_limits_[k].observe(observation.arm, *counted, at) && tripped == nullptr) tripped = &at_limits_[k];
  }
  return tripped;
}

std::optional<bool> LatencyGuards::exceeds_p99(const Observation& observation, milliseconds at) const {
  const auto* limits = ranks_.limits_of(observation, at);
  if (limits == nullptr || missing_to_certify() > 0) return std::nullopt;
  return observation.latency > (*limits)[LatencyLimits::kP99].of(observation.arm);
}

}  // namespace serin::rollout
