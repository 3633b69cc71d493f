#include "router/rollout/bernoulli_mixture.h"

#include <algorithm>
#include <numeric>

#include "router/rollout/change_point.h"

namespace serin::rollout {
namespace {

constexpr double kLargestRate = 0.95;

}  // namespace

BernoulliMixture::BernoulliMixture(double p0, double cap, Side side) : cap_(cap) {
  double multiple = 1;
  for (size_t j = 0; j < kRates; ++j) {
    multiple *= 2;
    const double alternative = side == Side::kBelow ? p0 / multiple : std::max(p0, std::min(kLargestRate, p0 * multiple));
    bad_ratio_[j] = alternative / p0;
    good_ratio_[j] = (1 - alternative) / (1 - p0);
  }
}

void BernoulliMixture::observe(bool bad) {
  double started = 0;
  if (state_.count % kAnswersPerStart == 0) started = std::min(state_.unused_mass, change_point_mass(state_.count / kAnswersPerStart));
  ++state_.count;
  state_.unused_mass -= started;
  const auto& ratio = bad ? bad_ratio_ : good_ratio_;
  double sum = 0;
  for (size_t j = 0; j < kRates; ++j) {
    state_.mixture[j] = std::min(cap_, (state_.mixture[j] + started) * ratio[j]);
    sum += state_.mixture[j];
  }
  e_ = sum / kRates + state_.unused_mass;
}

void BernoulliMixture::restore(const MixtureState& state) {
  state_ = state;
  e_ = std::accumulate(state.mixture.begin(), state.mixture.end(), 0.0) / kRates + state.unused_mass;
}

}  // namespace serin::rollout
