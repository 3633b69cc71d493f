// few_guard.h: Tests whether the canary is wrong for a few inputs, which a limit on all disagreement would allow.
//
//   FewGuard few(trip_value(alpha, kShadowShare / 2));
//   if (few.observe(pair, at)) roll_back(few.verdict());
//
// New weights give another label here and there, and may. But a canary that gives the same numbers as stable for most inputs has not
// been retrained: it is the same model in another build. If that one gives an entirely different label for some, it is wrong for those.
#pragma once

#include <chrono>
#include <cstdint>

#include "router/rollout/bernoulli_mixture.h"
#include "router/rollout/event_guard.h"
#include "router/rollout/observation.h"
#include "router/rollout/tape.h"
#include "router/rollout/verdict_record.h"

namespace serin::rollout {

class FewGuard {
 public:
  explicit FewGuard(double trip_value);

  /// One comparable pair. Returns whether to roll back.
  bool observe(const ShadowPair& pair, std::chrono::milliseconds at);

  static constexpr const char* kName = "shadow_few";
  std::string name() const { return kName; }
  Evidence evidence() const;
  Verdict verdict() const;
  VerdictRecord record() const;

 private:
  struct Processes {
    BernoulliMixture far, same;
    double joint() const { return far.e() < same.e() ? far.e() : same.e(); }
  };

  const double trip_value_;
  Processes now_;
  Tape<Processes> tape_;
  Processes before_good_;  // before the pairs since the last event
  uint64_t good_since_ = 0;
  uint64_t pairs_ = 0, far_ = 0, telling_ = 0, same_ = 0;
};

}  // namespace serin::rollout
