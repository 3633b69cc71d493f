// bernoulli_mixture.h: Tests whether a rate is above p0, for the user's thresholds and for disagreeing shadow answers.
//
//   BernoulliMixture threshold(0.01);     // at most 1 % bad
//   threshold.observe(true);
//   if (threshold.e() >= trip_value(0.001, 0.055)) ...
//
// Against p_j = min(0.95, p0 2^j), j = 1..8, one answer has the likelihood ratio p_j/p0 if bad and (1-p_j)/(1-p0) if good: expectation 1 at
// p0, less below. The change-point prior of change_point.h, one start in every 32 answers, keeps it sensitive after a million good ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "router/rollout/mixture_state.h"

namespace serin::rollout {

class BernoulliMixture {
 public:
  enum class Side : uint8_t { kAbove, kBelow };
  /// The e-value never exceeds the cap, so that the test recovers soon after a long outage. It is still a supermartingale. kBelow tests
  /// whether the rate is below p0, against p0 / 2^j.
  explicit BernoulliMixture(double p0, double cap = kLargestEvidence, Side side = Side::kAbove);

  void observe(bool bad);
  double e() const { return e_; }
  uint64_t answers() const { return state_.count; }
  const MixtureState& state() const { return state_; }
  void restore(const MixtureState& state);

 private:
  static constexpr size_t kRates = MixtureState::kAlternatives;

  double cap_;
  std::array<double, kRates> bad_ratio_{}, good_ratio_{};
  MixtureState state_;
  double e_ = 1;
};

}  // namespace serin::rollout
