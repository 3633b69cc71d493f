#include "router/rollout/rank_comparison.h"

#include <algorithm>
#include <utility>

namespace serin::rollout {

using std::chrono::milliseconds;

RankComparison::RankComparison(const Guard& guard, std::string name, double trip_value, const Baseline& before)
    : limits_(guard, before), ranks_(std::move(name), guard.tolerate_ratio, trip_value) {}

void RankComparison::learn(const Observation& observation, milliseconds at) {
  stable_failed_ = false;
  limits_.learn(observation.latency, at);
}

const LatencyLimits::Limits* RankComparison::limits_of(const Observation& observation, milliseconds at) const {
  return limits_.at(at - observation.late - std::chrono::ceil<milliseconds>(observation.latency));
}

bool RankComparison::compare(const Observation& observation, const Unit& unit, bool warm, milliseconds at) {
  const auto* limits = limits_of(observation, at);
  if (limits == nullptr) return false;
  const auto slower = [&](const LatencyLimits::Limit& limit) { return observation.latency > limit.of(observation.arm); };
  const auto rank = static_cast<size_t>(std::ranges::partition_point(*limits, slower) - limits->begin());
  return ranks_.observe(observation.arm, rank, unit, !warm, at);
}

/// A fast answer of stable is evidence because the same request, drawn to the canary, would have been counted as well. So a request of the canary
/// whose time is not known counts as the fastest. One of stable counts as a failure, or as the slowest where it seems to be down.
void RankComparison::not_good(const Observation& observation, bool warm, milliseconds at) {
  if (limits_.missing() > 0) return;
  const Unit unit(drawn_share(observation));
  if (observation.arm == Arm::kCanary) {
    if (warm) ranks_.observe(Arm::kCanary, 0, unit, false, at);
    return;
  }
  if (!is_failure(observation.outcome)) return;
  const bool down =
      std::exchange(stable_failed_, true) || observation.ending != Ending::kAnswered || observation.outcome == Outcome::kDeadline;
  ranks_.observe(Arm::kStable, down ? RankProcess::kRanks - 1 : RankProcess::kFailed, unit, !warm, at);
}

}  // namespace serin::rollout
