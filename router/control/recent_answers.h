// recent_answers.h: Statistics of one version's answers in the last 10 to 20 seconds. For display only: no verdict uses them.
//
// Two windows alternate, as in baseline.h. Quantiles over one second of a canary's few answers would jump. Those over a whole rollout would
// hide recent changes. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

#include "router/rollout/observation.h"
#include "router/rollout/rollout.h"
#include "runtime/base/histogram.h"

namespace serin::router {

/// Quantiles of good answers only; 0 if there is none.
struct AnswerSummary {
  double seconds = 0;                  ///< the time span of these answers
  uint64_t answers = 0, failures = 0;  ///< failures among them: errors, refusals, missed deadlines
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
  /// Discards old answers.
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
