// latency_guards.h: Tests whether the canary is slower than stable, from the first answers on.
//
// Where requests are independent, one test of the ranks of all answers (rank_process.h). Where requests stick to an arm by a key, four tests
// at single limits, because a key may count only until its first slow answer (key_gate.h).
#pragma once

#include <array>
#include <chrono>
#include <optional>

#include "router/rollout/event_guard.h"
#include "router/rollout/key_gate.h"
#include "router/rollout/rank_comparison.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

class LatencyGuards {
 public:
  LatencyGuards(const Guard& guard, bool sticky, const Baseline& baseline);

  /// Every good answer of stable, before observe(), whether or not it is a unit of its own.
  void learn(const Observation& observation, std::chrono::milliseconds at) { ranks_.learn(observation, at); }
  /// Any other answer to a drawn request, and a request without one. warm: no endpoint of the canary is cold.
  void not_good(const Observation& observation, bool warm, std::chrono::milliseconds at);
  /// One unit's good answer, of an endpoint that is not cold. Returns the verdict of the guard that tripped.
  std::optional<Verdict> observe(const Observation& observation, const Unit& unit, bool warm, std::chrono::milliseconds at);
  /// Whether this canary answer, of an endpoint that is not cold, took longer than stable's p99 plus slack and floor. Nothing while p99 is
  /// known too roughly to certify.
  std::optional<bool> exceeds_p99(const Observation& observation, std::chrono::milliseconds at) const;

  /// Answers of stable until latency is judged, and until it is certified.
  uint64_t missing() const { return ranks_.limits().missing(); }
  uint64_t missing_to_certify() const { return learned() >= certain_ ? 0 : certain_ - learned(); }

  template <class Visitor>
  void each(Visitor&& visit) const {
    if (!sticky_) return visit(ranks_.guard());
    for (const EventGuard& guard : at_limits_) visit(guard);
  }

 private:
  static constexpr uint64_t kCertain = 1000;

  uint64_t learned() const { return ranks_.limits().learned(); }
  const EventGuard* observe_key(const Observation& observation, const LatencyLimits::Limits& limits, const Unit& unit,
                                std::chrono::milliseconds at);

  bool sticky_;
  uint64_t certain_;  // of stable's answers behind a p99 that certifies
  RankComparison ranks_;
  std::array<EventGuard, 4> at_limits_;
  std::array<KeyGate, 4> gates_;
};

}  // namespace serin::rollout
