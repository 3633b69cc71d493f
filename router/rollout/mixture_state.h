// mixture_state.h: The complete state of a betting process: enough to stop it and continue it elsewhere, bit for bit.
//
// Every test of this folder is such a process: bets on eight alternatives, each spread over the moments at which a fault may begin. They differ
// in the factors by which an event multiplies the bets.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "router/rollout/change_point.h"

namespace serin::rollout {

/// Bets are clamped here. No process outlives its trip, which lies at 1e12 at most, and clamping keeps a supermartingale one.
inline constexpr double kLargestEvidence = 1e200;

struct MixtureState {
  static constexpr size_t kAlternatives = 8;
  std::array<double, kAlternatives> mixture{};
  double unused_mass = 1;  ///< of the change-point prior
  uint64_t count = 0;      ///< events or answers so far
  bool operator==(const MixtureState&) const = default;

  /// The e-value: the mean of the bets, and the mass that has not been bet yet.
  double e() const { return std::accumulate(mixture.begin(), mixture.end(), 0.0) / kAlternatives + unused_mass; }

  /// One event: multiplies the bet on alternative j by factor(j). A part of the prior is bet at one event in `start_every`, before that.
  template <class Factor>
  void observe(uint64_t start_every, double cap, const Factor& factor) {
    double started = 0;
    if (count % start_every == 0) started = std::min(unused_mass, change_point_mass(count / start_every));
    ++count;
    unused_mass -= started;
    for (size_t j = 0; j < kAlternatives; ++j) mixture[j] = std::min(cap, (mixture[j] + started) * factor(j));
  }
};

/// For processes over answers, which are more than events: the prior is bet at one in so many.
inline constexpr uint64_t kAnswersPerStart = 32;

}  // namespace serin::rollout
