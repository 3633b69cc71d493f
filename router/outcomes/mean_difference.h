// mean_difference.h: By how much the mean outcome of one version is above that of another, with an interval that is valid at all times together.
//
//   MeanDifference difference;
//   difference.add(/*is_first=*/true, /*share=*/0.05, /*value=*/1.0);      // outcomes are scaled to [0, 1]
//   const Interval interval = difference.interval(0.05);                // after every outcome, if wanted
//
// Pure and cheap: an outcome is a few sums. They survive changes of the shares and of the traffic: mean_difference.cc has the proof.
#pragma once

#include <cstdint>

namespace serin::router {

struct Interval {
  double estimate = 0, low = -1, high = 1;
};

/// Sums of x^2 c^k over numbers x, none of which can be below -c, for a c that was known before: what a deviation of their sum costs.
struct Spread {
  double squares = 0, first = 0, second = 0, third = 0;  ///< k = 0, 1, 2, 3
  void add(double number, double bound);
  bool operator==(const Spread&) const = default;
};

/// Everything that must be kept of the outcomes of two versions, the first and the second.
struct DifferenceSums {
  uint64_t count = 0;
  double values = 0;   ///< of Y
  double score = 0;    ///< of phi = (A - p) (Y - m)
  double overlap = 0;  ///< of p (1 - p)
  Spread up, down;     ///< of phi and of -phi
  double surplus = 0;  ///< of A - p
  Spread more, fewer;  ///< of A - p and of p - A
  bool operator==(const DifferenceSums&) const = default;
};

class MeanDifference {
 public:
  MeanDifference() = default;
  explicit MeanDifference(const DifferenceSums& sums) : sums_(sums) {}

  /// One outcome of a request that was drawn for the first version with probability `share`, else for the second: 0 < share < 1.
  void add(bool is_first, double share, double value);
  /// Of the first version's mean minus the second's. With probability 1 - alpha it contains the truth after every outcome.
  Interval interval(double alpha) const;
  /// log of an e-value against "whether an outcome is reported does not depend on the version".
  double imbalance() const;
  /// Of all outcomes so far, drawn towards 0.5 as long as there are few.
  double mean() const { return (0.5 + sums_.values) / (1 + static_cast<double>(sums_.count)); }
  const DifferenceSums& sums() const { return sums_; }

 private:
  DifferenceSums sums_;
};

/// log of the supermartingale, for numbers whose sum is `deviation` above the sum of their expectations.
double log_mixture(double deviation, const Spread& spread);
/// The deviation at which log_mixture() reaches `threshold`, which is positive.
double deviation_at(double threshold, const Spread& spread);

}  // namespace serin::router
