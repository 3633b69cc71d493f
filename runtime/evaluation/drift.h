// drift.h: whether two samples of numbers come from the same distribution.
#pragma once

#include <vector>

namespace serin::evaluation {

/// The two-sample test of Kolmogorov and Smirnov.
struct SampleDistance {
  double distance = 0;  ///< largest difference of the two distribution functions, 0 to 1
  double p_value = 1;   ///< two-sided, of the limiting distribution; good from some 25 numbers in each sample on
};

/// Sorts both. NaN counts as greater than all numbers. An empty sample: distance 0.
SampleDistance kolmogorov_smirnov(std::vector<double> first, std::vector<double> second);

}  // namespace serin::evaluation
