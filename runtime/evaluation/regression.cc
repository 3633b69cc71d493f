#include "runtime/evaluation/regression.h"

#include <cmath>
#include <limits>

namespace serin::evaluation {
namespace {

struct Sums {
  double absolute = 0, squared = 0, truth = 0, truth_squared = 0;
};

Sums sums_of(const NumberSamples& samples, RowList rows, size_t output) {
  Sums sums;
  double mean = 0;
  for (const uint32_t row : rows) mean += samples.truth[row * samples.outputs + output];
  mean /= static_cast<double>(rows.size());
  for (const uint32_t row : rows) {
    const double truth = samples.truth[row * samples.outputs + output];
    const double error = samples.predicted[row * samples.outputs + output] - truth;
    sums.absolute += std::abs(error);
    sums.squared += error * error;
    sums.truth_squared += (truth - mean) * (truth - mean);  // around the mean: no digits are lost
  }
  return sums;
}

template <class Of>
Metric mean_over_outputs(const char* name, bool more_is_better, const NumberSamples& samples, Of of) {
  return {name, more_is_better, [&samples, of](RowList rows) {
            double sum = 0;
            for (size_t output = 0; output < samples.outputs; ++output)
              sum += of(sums_of(samples, rows, output), static_cast<double>(rows.size()));
            return sum / static_cast<double>(samples.outputs);
          }};
}

}  // namespace

std::vector<Metric> regression_metrics(const NumberSamples& samples) {
  return {
      mean_over_outputs("rmse", false, samples, [](const Sums& sums, double rows) { return std::sqrt(sums.squared / rows); }),
      mean_over_outputs("mae", false, samples, [](const Sums& sums, double rows) { return sums.absolute / rows; }),
      mean_over_outputs("r2", true, samples,
                        [](const Sums& sums, double rows) {
                          if (rows < 2) return std::numeric_limits<double>::quiet_NaN();
                          return sums.truth_squared > 0 ? 1 - sums.squared / sums.truth_squared : sums.squared == 0 ? 1.0 : 0.0;
                        }),
  };
}

}  // namespace serin::evaluation
