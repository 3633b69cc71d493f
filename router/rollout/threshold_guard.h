// threshold_guard.h: a limit that the user set ("errors: {max: 1%}", "latency: {p99: 50ms}"), judged by evidence on the canary's own answers,
// with a second look at stable: an outage of both must not be called the canary's fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "router/rollout/bernoulli_mixture.h"
#include "router/rollout/event_guard.h"

namespace serin::rollout {

class ThresholdGuard {
 public:
  struct Limit {
    std::string name;  ///< "threshold:errors"
    std::string text;  ///< "errors above 1 %"
    double p0 = 0.01;  ///< the rate allowed
    double trip_value = 1;
    bool ask_stable = true;  ///< whenStableBreachesToo: hold
  };
  explicit ThresholdGuard(Limit limit);

  void observe_stable(bool bad);
  /// One canary unit; share is the weight it was drawn at. Returns whether the canary is to be rolled back.
  bool observe_canary(bool bad, double share);

  const std::string& name() const { return limit_.name; }
  /// The canary was found above the limit while stable was, too, and stable still is: the steps hold.
  bool holding() const { return holding_ && stable_breaches(); }
  Evidence evidence() const;
  Verdict verdict() const;

 private:
  bool stable_breaches() const;

  Limit limit_;
  BernoulliMixture canary_;
  double highest_ = 1;    // e-value at the trip, for the verdict
  bool pending_ = false;  // tripped; waiting for enough of stable's answers since
  bool holding_ = false;
  uint64_t stable_at_trip_ = 0;
  uint64_t stable_units_ = 0, stable_bad_ = 0, canary_bad_ = 0;
  std::vector<bool> stable_recent_;  // ring
  uint64_t stable_recent_bad_ = 0;
};

}  // namespace serin::rollout
