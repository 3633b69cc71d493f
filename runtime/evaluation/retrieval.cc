#include "runtime/evaluation/retrieval.h"

#include <cmath>

namespace serin::evaluation {
namespace {

/// In double, so that the order of the sum does not decide between neighbours.
double dot(const float* a, const float* b, size_t width) {
  double sum = 0;
  for (size_t i = 0; i < width; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

}  // namespace

std::vector<size_t> ranks_of_first_match(const VectorSamples& samples) {
  const size_t rows = samples.rows(), width = samples.width;
  std::vector<double> lengths(rows), cosines(rows);
  for (size_t row = 0; row < rows; ++row) {
    const float* const vector = samples.vectors.data() + row * width;
    lengths[row] = std::sqrt(dot(vector, vector, width));
  }
  std::vector<size_t> ranks(rows, rows);
  for (size_t row = 0; row < rows; ++row) {
    size_t best = rows;
    for (size_t other = 0; other < rows; ++other) {
      const double length = lengths[row] * lengths[other];
      cosines[other] = length > 0 ? dot(samples.vectors.data() + row * width, samples.vectors.data() + other * width, width) / length : 0;
      if (other == row || samples.truth[other] != samples.truth[row]) continue;
      if (best == rows || cosines[other] > cosines[best]) best = other;
    }
    if (best == rows) continue;
    size_t nearer = 0;
    for (size_t other = 0; other < rows; ++other) {
      if (other == row || samples.truth[other] == samples.truth[row]) continue;
      nearer += cosines[other] > cosines[best] || (cosines[other] == cosines[best] && other < best) ? 1 : 0;
    }
    ranks[row] = nearer;
  }
  return ranks;
}

Metric recall_metric(const std::vector<size_t>& ranks, size_t k) {
  return share_metric("recall@" + std::to_string(k), [&ranks, k](uint32_t row) { return ranks[row] < k && ranks[row] < ranks.size(); });
}

std::vector<Metric> retrieval_metrics(const std::vector<size_t>& ranks) {
  return {recall_metric(ranks, 1), recall_metric(ranks, 5), recall_metric(ranks, 10)};
}

}  // namespace serin::evaluation
