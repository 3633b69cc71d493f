// event_process.h: Tests whether bad events fall on the canary more often than its share of the traffic explains.
//
//   EventProcess err;
//   err.observe(Arm::kCanary, 0.05);      // one bad event, drawn when the canary had 5 % of the traffic
//   if (err.e() >= trip_value(0.001, kErrorShare)) roll_back();
//
// Only bad events cost work. An outage of both arms changes nothing, weights may change between events, and checking after every event is
// allowed: README.md has the proof.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "router/rollout/mixture_state.h"
#include "router/rollout/observation.h"

namespace serin::rollout {

class EventProcess {
 public:
  /// tolerated_ratio: the multiple of stable's bad rate that the canary may have.
  explicit EventProcess(double tolerated_ratio = 1.0);

  /// One bad event. share is the canary's share of the units that could have had it, 0..1; units is the number of units this event counts
  /// for.
  void observe(Arm arm, double share, double units = 1);
  double e() const { return e_; }
  uint64_t events() const { return state_.count; }
  const MixtureState& state() const { return state_; }
  void restore(const MixtureState& state);

  static constexpr size_t kRatios = MixtureState::kAlternatives;  ///< alternatives: 2, 4 ... 256 times the tolerated ratio

 private:
  void prepare(double share);

  double tolerated_ratio_;
  // The likelihood ratios below belong to this share; they are the same for thousands of events.
  double prepared_share_ = -1;
  std::array<double, kRatios> canary_ratio_{}, stable_ratio_{};
  MixtureState state_;
  double e_ = 1;
};

}  // namespace serin::rollout
