// latency_guards.h: Tests whether the canary is slower than stable: four comparisons, at stable's own p50, p90, p99 and twice its p99.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "router/rollout/event_guard.h"
#include "router/rollout/key_gate.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

class LatencyGuards {
 public:
  LatencyGuards(const Guard& guard, const Baseline& baseline);

  /// A good answer of stable while the baseline is still too small: fills it, whether or not the answer is a unit of its own.
  void fill_baseline(std::chrono::nanoseconds latency);
  /// One unit's good answer. Returns the guard that tripped.
  const EventGuard* observe(const Observation& observation, const Unit& unit, std::chrono::milliseconds at);
  /// Whether this canary answer took longer than stable's p99 plus slack and floor; nothing while latency is not judged.
  std::optional<bool> exceeds_p99(std::chrono::nanoseconds latency) const;

  bool ready() const { return !taus_.empty(); }
  uint64_t baseline_missing() const;
  const std::array<EventGuard, 4>& guards() const { return guards_; }

 private:
  static constexpr size_t kP99 = 2;
  void freeze();

  struct Tau {
    std::chrono::nanoseconds stable, canary;  // the canary's includes slack and floor
  };

  double slack_;
  std::chrono::nanoseconds floor_;
  uint64_t wanted_;
  uint64_t skip_;  // canary answers still to be skipped: a cold replica is slow at first
  Baseline baseline_;
  std::vector<Tau> taus_;  // one for each guard; empty until the baseline suffices
  std::array<EventGuard, 4> guards_;
  std::array<KeyGate, 4> gates_;
};

}  // namespace serin::rollout
