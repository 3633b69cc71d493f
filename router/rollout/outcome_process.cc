// outcome_process.cc: A is 1 if the request was drawn for the canary, w the probability of that, Y the outcome and m any number that earlier
// outcomes decide. The draw is independent of everything else, so phi = (A - w) (Y - m) has the expectation w (1 - w) (mean of the canary - mean
// of stable), whatever the context of the request does (router/outcomes/mean_difference.cc). If the canary is worse by d at most, then
//
//   X = -phi - d w (1 - w),     E[X] <= 0,     X >= -c,     c = max((1 - w) (1 - m), w m) + d w (1 - w)
//
// and 1 + f X / c is nonnegative with an expectation of at most 1 for each fraction f from 0 to 1: the factor of a bet of this fraction. It is the
// betting of Waudby-Smith and Ramdas (2024, "Estimating means of bounded random variables by betting"). c is known before the outcome, and is
// small where failures are rare, so a failure of a canary with a small share multiplies a bet by up to 1 + f (1 - w) m / c.

#include "router/rollout/outcome_process.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace serin::rollout {
namespace {

constexpr std::array<double, MixtureState::kAlternatives> kFractions = {0.8, 0.5, 0.3, 0.2, 0.12, 0.06, 0.03, 0.015};

}  // namespace

void OutcomeProcess::observe(bool canary, double share, double value, double mean) {
  const double tolerated = margin_ * share * (1 - share);
  const double worse = ((canary ? 1 : 0) - share) * (mean - value) - tolerated;
  const double most_lost = std::max((1 - share) * (1 - mean), share * mean) + tolerated;
  state_.observe(/*start_every=*/1, kLargestEvidence, [&](size_t j) { return 1 + kFractions[j] * worse / most_lost; });
}

}  // namespace serin::rollout
