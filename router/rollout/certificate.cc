// certificate.cc: non-inferiority, tested unit by unit.
//
// For H: p_canary >= p0, with p1 < p0 chosen before the unit is seen, exp(S) with
//
//   S += bad ? ln(p1/p0) : ln((1-p1)/(1-p0))
//
// is a nonnegative supermartingale under H (its mean grows as p falls, and is 1 at p0), so S ever reaching ln(1/beta) has probability <= beta
// where H is true. With p_s unknown, p0 = (lower bound of p_s) + margin keeps that on every path where the bound holds: a wrong
// certificate has probability at most beta (5 %) + 1 %.
//
// The lower bound is Robbins' mixture: for K bad of n, a Beta(1/2, 1/2) mixture over alternatives has the likelihood ratio
// B(K+1/2, n-K+1/2) / B(1/2, 1/2) / (p^K (1-p)^(n-K)) against p, a martingale at the true p; the rates it has not refuted at 1/0.01 form a
// confidence sequence, valid at all n at once (Robbins 1970; Howard, Ramdas, McAuliffe, Sekhon 2021).

#include "router/rollout/certificate.h"

#include <algorithm>
#include <cmath>

#include "router/rollout/spec.h"

namespace serin::rollout {
namespace {

constexpr double kBoundRisk = 0.01;
constexpr double kNearest = 0.9;  // p1 stays below p0 by so much, however bad stable is

double log_beta(double a, double b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); }

/// The smallest p that the mixture has not refuted.
double robbins_lower_bound(double bad, double units) {
  if (bad == 0) return 0;
  const double refuted = std::log(1 / kBoundRisk) - log_beta(bad + 0.5, units - bad + 0.5) + log_beta(0.5, 0.5);
  double low = 0, high = bad / units;
  for (int i = 0; i < 30; ++i) {
    const double p = (low + high) / 2;
    const double log_likelihood = bad * std::log(p) + (units - bad) * std::log1p(-p);
    (-log_likelihood >= refuted ? low : high) = p;
  }
  return low;
}

}  // namespace

double StableRate::lower_bound() const {
  if (units_ - bound_units_ > bound_units_ / 8) {
    bound_ = robbins_lower_bound(static_cast<double>(bad_), static_cast<double>(units_));
    bound_units_ = units_;
  }
  return bound_;
}

RateTest::RateTest(double confidence) : target_(-std::log(1 - confidence)) {}

void RateTest::observe(bool bad, double p0, double p1) {
  p1 = std::min(p1, kNearest * p0);
  score_ += bad ? std::log(p1 / p0) : std::log((1 - p1) / (1 - p0));
}

double RateTest::progress() const { return std::clamp(score_ / target_, 0.0, 1.0); }

void RateCertificate::observe(bool bad, double stable_bound, double stable_estimate) {
  const double p0 = std::min(stable_bound + margin_, 0.999);  // stable at 100 % bad: nothing left to be worse than
  test_.observe(bad, p0, std::max(stable_estimate, margin_ / 50));
}

void AgreementCertificate::observe(bool mismatch) {
  // p1 follows the disagreement seen so far: a better model disagrees now and then, and should not pay ln(50) each time.
  const double seen = pairs_ == 0 ? 0 : static_cast<double>(mismatches_) / static_cast<double>(pairs_);
  test_.observe(mismatch, limit_, std::max(seen, limit_ / 50));
  ++pairs_;
  mismatches_ += mismatch;
}

Margins tapered_margins(uint32_t weight_ppm) {
  if (weight_ppm < 50'000) return {0.02, 0.05};
  if (weight_ppm < 200'000) return {0.01, 0.02};
  return {0.005, 0.01};
}

}  // namespace serin::rollout
