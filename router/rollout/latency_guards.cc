// latency_guards.cc: compares the latencies of both arms. Stable's event is L > tau; the canary's is L > (1 + slack) tau + floor, because a
// better model that is 2 ms slower is no incident.

#include "router/rollout/latency_guards.h"

#include <algorithm>
#include <string>
#include <utility>

#include "router/rollout/alpha_budget.h"

namespace serin::rollout {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kForgotten = 1000;  // answers of the canary without one of a cold endpoint: it is gone

EventGuard make_guard(const Guard& guard, const char* name) {
  return EventGuard(name, guard.tolerate_ratio, trip_value(guard.false_rollback, kLatencyShare / 4));
}

/// When the request of an answer that came `at` was drawn.
milliseconds drawn_at(const Observation& observation, milliseconds at) {
  return at - observation.late - std::chrono::ceil<milliseconds>(observation.latency);
}

}  // namespace

LatencyGuards::LatencyGuards(const Guard& guard, bool sticky, const Baseline& baseline)
    : sticky_(sticky),
      skip_(guard.latency_skip),
      certain_(std::min(guard.latency_baseline, kCertain)),
      limits_(guard, baseline),
      ranks_("lat_rank", guard.tolerate_ratio, trip_value(guard.false_rollback, kLatencyShare)),
      at_limits_{make_guard(guard, "lat_p50"), make_guard(guard, "lat_p90"), make_guard(guard, "lat_p99"), make_guard(guard, "lat_2xp99")} {
}

void LatencyGuards::arrived(const Observation& observation, milliseconds at) {
  if (observation.arm == Arm::kCanary) return count_answer(observation.endpoint);
  stable_failed_ = false;
  limits_.learn(observation.latency, at);
}

void LatencyGuards::count_answer(uint32_t endpoint) {
  const size_t index = endpoint_slot(endpoint);
  if (index >= answers_.size()) answers_.resize(index + 1);
  const uint64_t answers = ++answers_[index];
  ++total_;
  std::erase_if(cold_, [&](const Cold& cold) { return cold.endpoint == index || total_ - cold.last > kForgotten; });
  if (answers <= skip_)
    cold_.push_back({index, total_});
  else
    any_warm_ = true;
}

bool LatencyGuards::is_cold(const Observation& observation) const {
  if (observation.arm != Arm::kCanary) return false;
  const size_t index = endpoint_slot(observation.endpoint);
  return index >= answers_.size() || answers_[index] <= skip_;
}

std::optional<Verdict> LatencyGuards::observe(const Observation& observation, const Unit& unit, milliseconds at) {
  const auto* limits = limits_.at(drawn_at(observation, at));
  if (limits == nullptr || is_cold(observation)) return std::nullopt;
  if (sticky_) {
    const EventGuard* tripped = observe_key(observation, *limits, unit, at);
    return tripped == nullptr ? std::nullopt : std::optional(tripped->verdict(at_share(unit.share)));
  }
  const auto slower = [&](const LatencyLimits::Limit& limit) { return observation.latency > limit.of(observation.arm); };
  const auto rank = static_cast<size_t>(std::ranges::partition_point(*limits, slower) - limits->begin());
  if (!ranks_.observe(observation.arm, rank, unit, !all_warm(), at)) return std::nullopt;
  return ranks_.verdict(at_share(unit.share));
}

/// A fast answer of stable is evidence because the same request, drawn to the canary, would have been counted as well. So a request of the canary
/// whose time is not known counts as the fastest. One of stable counts as a failure, or as the slowest where it seems to be down.
void LatencyGuards::not_good(const Observation& observation, milliseconds at) {
  if (sticky_ || limits_.missing() > 0) return;
  const Unit unit(drawn_share(observation));
  if (observation.arm == Arm::kCanary) {
    if (all_warm()) ranks_.observe(Arm::kCanary, 0, unit, false, at);
    return;
  }
  if (!is_failure(observation.outcome)) return;
  const bool down =
      std::exchange(stable_failed_, true) || observation.ending != Ending::kAnswered || observation.outcome == Outcome::kDeadline;
  ranks_.observe(Arm::kStable, down ? RankProcess::kRanks - 1 : RankProcess::kFailed, unit, !all_warm(), at);
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
  const auto* limits = limits_.at(drawn_at(observation, at));
  if (limits == nullptr || missing_to_certify() > 0 || is_cold(observation)) return std::nullopt;
  return observation.latency > (*limits)[LatencyLimits::kP99].of(observation.arm);
}

}  // namespace serin::rollout
