#include "router/rollout/bernoulli_mixture.h"

#include <algorithm>

#include "router/rollout/change_point.h"

namespace serin::rollout {
namespace {

constexpr double kLargestRate = 0.95;

}  // namespace

BernoulliMixture::BernoulliMixture(double p0, double cap) : cap_(cap) {
  double rate = p0;
  for (size_t j = 0; j < kRates; ++j) {
    rate *= 2;
    const double alternative = std::max(p0, std::min(kLargestRate, rate));
    bad_ratio_[j] = alternative / p0;
    good_ratio_[j] = (1 - alternative) / (1 - p0);
  }
}

void BernoulliMixture::observe(bool bad) {
  double started = 0;
  if (answers_ % kAnswersPerStart == 0) started = std::min(unused_mass_, change_point_mass(answers_ / kAnswersPerStart));
  ++answers_;
  unused_mass_ -= started;
  const auto& ratio = bad ? bad_ratio_ : good_ratio_;
  double sum = 0;
  for (size_t j = 0; j < kRates; ++j) {
    mixture_[j] = std::min(cap_, (mixture_[j] + started) * ratio[j]);
    sum += mixture_[j];
  }
  e_ = sum / kRates + unused_mass_;
}

}  // namespace serin::rollout
