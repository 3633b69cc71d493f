// certificate.h: Evidence that the canary is *not worse* than stable by a margin, which lets a step advance instead of a fixed pause.
//
//   RateCertificate errors(/*margin=*/0.01, /*confidence=*/0.95);
//   errors.observe(bad, stable_rate);               // every canary unit of this step
//   if (errors.certified()) advance();
//
// Without traffic there is no certificate, and the step holds.
#pragma once

#include <cstdint>

namespace serin::rollout {

/// Stable's rate of bad units so far, with a lower bound that is valid at every moment at once.
class StableRate {
 public:
  void observe(bool bad) {
    ++units_;
    bad_ += bad;
  }
  double estimate() const { return units_ == 0 ? 0 : static_cast<double>(bad_) / static_cast<double>(units_); }
  /// At most the true rate, always, with probability 99 %.
  double lower_bound() const;
  uint64_t units() const { return units_; }

 private:
  uint64_t units_ = 0, bad_ = 0;
  // The bound is recomputed when an eighth more units are known: an older one is still a bound.
  mutable uint64_t bound_units_ = 0;
  mutable double bound_ = 0;
};

/// The sequential likelihood-ratio test of H: rate >= p0 against a p1 below it. Both may change from unit to unit.
class RateTest {
 public:
  explicit RateTest(double confidence);
  void observe(bool bad, double p0, double p1);
  bool certified() const { return score_ >= target_; }
  double progress() const;

 private:
  double target_;  // ln(1/beta)
  double score_ = 0;
};

/// Errors or slow answers: H: p_canary >= p_stable + margin.
class RateCertificate {
 public:
  RateCertificate(double margin, double confidence) : margin_(margin), test_(confidence) {}
  void observe(bool bad, const StableRate& stable) { observe(bad, stable.lower_bound(), stable.estimate()); }
  /// For a stable rate that is known, such as that of a quantile.
  void observe(bool bad, double stable_bound, double stable_estimate);
  bool certified() const { return test_.certified(); }
  double progress() const { return test_.progress(); }
  double margin() const { return margin_; }

 private:
  double margin_;
  RateTest test_;
};

/// Shadow answers: H: disagreement >= limit. Certified after about ln(1/beta)/limit agreeing pairs.
class AgreementCertificate {
 public:
  AgreementCertificate(double limit, double confidence) : limit_(limit), test_(confidence) {}
  void observe(bool mismatch);
  bool certified() const { return test_.certified(); }
  double progress() const { return test_.progress(); }

 private:
  double limit_;
  RateTest test_;
  uint64_t pairs_ = 0, mismatches_ = 0;
};

struct Margins {
  double errors = 0, latency = 0;
};
/// Wide while few clients are exposed, narrow once many are.
Margins tapered_margins(uint32_t weight_ppm);

}  // namespace serin::rollout
