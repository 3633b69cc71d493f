// output_guards.h: Tests whether the canary's answers differ from stable's in form, labels or scores, without pairing requests.
//
//   form              answers whose names, datatypes, ranks or last dimensions stable never had
//   label c, often    the canary gives c more than `drift` times as often as stable;   rarely: less than a `drift`th as often
//   score high, low   its scores are beyond stable's p95 or p5 more than `drift` times as often as stable's
//
// The reference is stable's first answers, frozen, so that both arms are measured by the same. Each guard asks two questions
// (threshold_guard.h): is the canary's own rate beyond the reference, and is it beyond stable's now? The second alone would confuse an arm
// that stopped answering with one that never gives c again. The first alone would react to a night without requests for c.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/key_gate.h"
#include "router/rollout/spec.h"
#include "router/rollout/threshold_guard.h"

namespace serin::rollout {

class OutputGuards {
 public:
  explicit OutputGuards(const Guard& guard);

  /// One answer whose body was inspected, good or bad. Returns the verdict of the guard that tripped.
  std::optional<Verdict> observe(const Observation& observation, const Unit& unit, std::chrono::milliseconds at);

  /// The number of stable's answers to inspect before judging starts.
  uint64_t missing() const { return judged() ? 0 : kLearnt - learnt_.size(); }
  /// form, score_high, score_low and the label nearest to its trip: a list short enough to read.
  std::vector<Evidence> evidence() const;
  /// All of them, for explain.
  std::vector<const ThresholdGuard*> guards() const;

 private:
  static constexpr size_t kLearnt = 500;
  struct LabelGuards {
    uint32_t label;
    std::optional<ThresholdGuard> often;  // none if the label is already too frequent to become more frequent
    ThresholdGuard rarely;
  };
  bool judged() const { return !wanted_ || learnt_.size() >= kLearnt; }
  void learn(const Output& output);
  void freeze();
  void freeze_labels();
  void freeze_scores();
  bool is_known(uint64_t form) const;
  ThresholdGuard guard(std::string name, std::string text, double p0, double share, double tolerated_ratio, bool seldom = false) const;

  const bool wanted_;
  const double drift_, alpha_;
  std::vector<Output> learnt_;   // of stable; the guards keep the needed part after freezing
  std::vector<uint64_t> forms_;  // sorted
  double low_ = 0, high_ = 0;    // stable's p5 and p95
  ThresholdGuard form_;
  std::optional<ThresholdGuard> score_high_, score_low_;
  std::vector<LabelGuards> labels_;
  KeyGate gate_;  // a key's first answer is its only one: a user's preferences stay the same
};

}  // namespace serin::rollout
