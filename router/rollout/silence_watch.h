// silence_watch.h: Detects a canary that does not answer at all.
//
// A dead endpoint is one episode of evidence however many requests it loses (representative.h). So silence has its own rule: the canary
// fails without an answer for twice the deadline while stable answers. A broken answer is none. But where the canary's process lives, broken
// answers are errors, and a handful of them decides before the silence does.
#pragma once

#include <chrono>
#include <optional>

#include "router/rollout/observation.h"
#include "router/rollout/report.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

class SilenceWatch {
 public:
  explicit SilenceWatch(const Guard& guard);

  void observe(const Observation& observation, Time now);
  bool silent(Time now) const { return since_ && stable_answered_ && now - *since_ >= 2 * deadline_; }
  double seconds(Time now) const { return since_ ? std::chrono::duration<double>(now - *since_).count() : 0; }
  /// Forgets the silence so far; the next one is measured from its own first failure.
  void restart();

  std::chrono::nanoseconds deadline() const { return deadline_; }

 private:
  std::chrono::nanoseconds deadline_;
  std::optional<Time> since_;  // the canary's first failure without an answer since its last answer
  bool stable_answered_ = false;
};

}  // namespace serin::rollout
