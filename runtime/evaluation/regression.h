// regression.h: errors of predicted numbers. The definitions are scikit-learn's, with the mean over several outputs.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/evaluation/metric.h"

namespace serin::evaluation {

struct NumberSamples {
  size_t outputs = 1;
  std::vector<double> truth, predicted;  ///< of each row and output

  size_t rows() const { return truth.size() / outputs; }
};

/// rmse, mae, r2. `samples` must outlive the metrics.
std::vector<Metric> regression_metrics(const NumberSamples& samples);

}  // namespace serin::evaluation
