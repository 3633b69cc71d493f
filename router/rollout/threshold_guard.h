// threshold_guard.h: A limit set by the user ("errors: {max: 1%}", "latency: {p99: 50ms}"), judged by evidence and not by one bad scrape.
//
// Exceeding the limit is not enough if stable may exceed it as well: an outage of both must not count against the canary.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "router/rollout/bernoulli_mixture.h"
#include "router/rollout/event_guard.h"
#include "router/rollout/event_process.h"
#include "router/rollout/representative.h"

namespace serin::rollout {

/// Tests whether the rate is above p0, or, if it may not become rare, below it. For an active guard and for its record.
BernoulliMixture limit_process(double p0, double cap, bool seldom);

class ThresholdGuard {
 public:
  struct Limit {
    std::string name;  ///< "threshold:errors"
    std::string text;  ///< "errors above 1 %"
    double p0 = 0.01;  ///< the rate allowed
    double trip_value = 1;
    bool ask_stable = true;  ///< whenStableBreachesToo: hold
    double tolerated_ratio = 1;
    bool seldom = false;  ///< reverses both questions: below p0, and less often than stable
  };
  explicit ThresholdGuard(Limit limit);

  /// One answer; alone means that stable gets no traffic. Returns whether to roll back.
  bool observe(Arm arm, bool bad, const Unit& unit, bool alone, std::chrono::milliseconds at = {});
  /// An answer to a request that was not drawn: above the limit or not, but without a comparison. Never rolls back; may hold the steps.
  void observe_cohort(bool bad, std::chrono::milliseconds at);

  const std::string& name() const { return limit_.name; }
  /// The canary is shown to be above the limit, but not to be worse than stable: the steps hold.
  bool holding() const { return now_.above.e() >= limit_.trip_value; }
  Evidence evidence() const;
  /// Of both questions the one that is further from its answer.
  double joint_bits() const;
  Verdict verdict() const;
  VerdictRecord record() const;

 private:
  struct Processes {
    BernoulliMixture above;
    EventProcess worse;
  };
  void tell(Arm arm, bool bad, const Unit* unit, bool alone, std::chrono::milliseconds at);
  void keep_good(bool alone, std::chrono::milliseconds at);
  bool decided(bool alone) const { return holding() && (!limit_.ask_stable || alone || now_.worse.e() >= limit_.trip_value); }

  Limit limit_;
  Processes now_;
  Tape<Processes> tape_;
  Processes before_good_;  // before the good answers since the last event
  uint64_t good_since_ = 0;
  uint64_t stable_bad_ = 0, stable_units_ = 0, canary_bad_ = 0, canary_units_ = 0;
};

}  // namespace serin::rollout
