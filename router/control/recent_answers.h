// recent_answers.h: how one version has answered in the last 10 to 20 seconds. For people: no verdict rests on it.
//
// Two windows take turns, as in baseline.h: quantiles over a second of a canary's few answers would jump, and those over a whole rollout hide
// what has just begun. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

#include "router/rollout/observation.h"
#include "router/rollout/rollout.h"
#include "runtime/base/histogram.h"

namespace serin::router {

/// Quantiles are those of good answers; 0 where there is none.
struct AnswerSummary {
  double seconds = 0;                  ///< that they came in
  uint64_t answers = 0, failures = 0;  ///< of them: errors, refusals, deadlines passed
  std::chrono::nanoseconds p50{0}, p90{0}, p99{0};
};

class RecentAnswers {
 public:
  static constexpr std::chrono::seconds kTurn{10};

  void record(const rollout::Observation& observation) {
    if (observation.outcome == rollout::Outcome::kOk) young_.good.record(observation.latency);
    young_.failures += rollout::is_failure(observation.outcome);
    ++young_.answers;
  }
  /// Forgets what is too old.
  void turn(rollout::Time now) {
    if (now < next_turn_) return;
    next_turn_ = now + kTurn;
    old_ = young_;
    young_ = Window{.begun = now};
  }
  AnswerSummary summary(rollout::Time now) const {
    LatencyHistogram good = old_.good;
    good.merge(young_.good);
    const auto begun = old_.begun == rollout::Time() ? young_.begun : old_.begun;
    return {.seconds = std::chrono::duration<double>(now - begun).count(),
            .answers = old_.answers + young_.answers,
            .failures = old_.failures + young_.failures,
            .p50 = good.quantile(0.5),
            .p90 = good.quantile(0.9),
            .p99 = good.quantile(0.99)};
  }

 private:
  struct Window {
    rollout::Time begun{};
    LatencyHistogram good;
    uint64_t answers = 0, failures = 0;
  };
  Window old_, young_;
  rollout::Time next_turn_{};
};

}  // namespace serin::router
