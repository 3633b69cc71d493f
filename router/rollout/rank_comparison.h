// rank_comparison.h: Compares the latencies of both arms by their ranks among stable's limits, which it learns itself: of all requests, or of
// one class of requests (slice_guards.h).
#pragma once

#include <chrono>
#include <string>

#include "router/rollout/latency_limits.h"
#include "router/rollout/rank_guard.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

class RankComparison {
 public:
  RankComparison(const Guard& guard, std::string name, double trip_value, const Baseline& before);

  /// A good answer of stable, before compare(), whether or not it is a unit of its own.
  void learn(const Observation& observation, std::chrono::milliseconds at);
  /// One unit's good answer, of an endpoint that is not cold. warm: no endpoint of the canary is cold. Returns whether it tripped.
  bool compare(const Observation& observation, const Unit& unit, bool warm, std::chrono::milliseconds at);
  /// Any other answer to a drawn request, and a request without one. It never trips.
  void not_good(const Observation& observation, bool warm, std::chrono::milliseconds at);

  const LatencyLimits& limits() const { return limits_; }
  /// In force when the request of this answer was drawn; null: not learned yet.
  const LatencyLimits::Limits* limits_of(const Observation& observation, std::chrono::milliseconds at) const;
  const RankGuard& guard() const { return ranks_; }

 private:
  LatencyLimits limits_;
  bool stable_failed_ = false;  // its latest answer
  RankGuard ranks_;
};

}  // namespace serin::rollout
