#include "router/rollout/bernoulli_mixture.h"

#include <algorithm>

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
  const auto& ratio = bad ? bad_ratio_ : good_ratio_;
  state_.observe(kAnswersPerStart, cap_, [&](size_t j) { return ratio[j]; });
  e_ = state_.e();
}

void BernoulliMixture::restore(const MixtureState& state) {
  state_ = state;
  e_ = state.e();
}

}  // namespace serin::rollout
