// latency_guards.h: Tests whether the canary is slower than stable, from the first answers on.
//
// Where requests are independent, one test of the ranks of all answers (rank_process.h). Where requests stick to an arm by a key, four tests
// at single limits, because a key may count only until its first slow answer (key_gate.h).
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "router/rollout/event_guard.h"
#include "router/rollout/key_gate.h"
#include "router/rollout/latency_limits.h"
#include "router/rollout/rank_guard.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

class LatencyGuards {
 public:
  LatencyGuards(const Guard& guard, bool sticky, const Baseline& baseline);

  /// Every good answer, before observe(), whether or not it is a unit of its own.
  void arrived(const Observation& observation, std::chrono::milliseconds at);
  /// A good answer of the canary to a mirrored request: it warms its endpoint.
  void mirrored(uint32_t endpoint) { count_answer(endpoint); }
  /// Any other answer to a drawn request, and a request without one.
  void not_good(const Observation& observation, std::chrono::milliseconds at);
  /// One unit's good answer. Returns the verdict of the guard that tripped.
  std::optional<Verdict> observe(const Observation& observation, const Unit& unit, std::chrono::milliseconds at);
  /// Whether this canary answer took longer than stable's p99 plus slack and floor. Nothing while p99 is known too roughly to certify, or
  /// the endpoint is cold.
  std::optional<bool> exceeds_p99(const Observation& observation, std::chrono::milliseconds at) const;

  /// Answers of stable until latency is judged, and until it is certified.
  uint64_t missing() const { return limits_.missing(); }
  uint64_t missing_to_certify() const { return limits_.learned() >= certain_ ? 0 : certain_ - limits_.learned(); }

  template <class Visitor>
  void each(Visitor&& visit) const {
    if (!sticky_) return visit(ranks_);
    for (const EventGuard& guard : at_limits_) visit(guard);
  }

 private:
  static constexpr uint64_t kCertain = 1000;

  void count_answer(uint32_t endpoint);
  bool is_cold(const Observation& observation) const;
  bool all_warm() const { return skip_ == 0 || (any_warm_ && cold_.empty()); }
  const EventGuard* observe_key(const Observation& observation, const LatencyLimits::Limits& limits, const Unit& unit,
                                std::chrono::milliseconds at);

  bool sticky_;
  uint64_t skip_;     // of each endpoint of the canary: a cold replica is slow at first
  uint64_t certain_;  // of stable's answers behind a p99 that certifies
  LatencyLimits limits_;
  std::vector<uint64_t> answers_;  // of each endpoint of the canary
  uint64_t total_ = 0;             // of these answers
  bool any_warm_ = false;          // an endpoint of the canary is
  struct Cold {
    size_t endpoint;
    uint64_t last;  // total_ at its latest answer
  };
  std::vector<Cold> cold_;      // endpoints of the canary that answer, but not enough yet
  bool stable_failed_ = false;  // its latest answer
  RankGuard ranks_;
  std::array<EventGuard, 4> at_limits_;
  std::array<KeyGate, 4> gates_;
};

}  // namespace serin::rollout
