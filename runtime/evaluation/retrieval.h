// retrieval.h: whether the neighbours of a vector have its label: each row searches for the others of its label, by the cosine.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/evaluation/metric.h"

namespace serin::evaluation {

struct VectorSamples {
  size_t width = 0;
  std::vector<float> vectors;      ///< of each row
  std::vector<std::string> truth;  ///< labels

  size_t rows() const { return truth.size(); }
};

/// Of each row, how many others are nearer than the nearest one of the same label; rows() where no other row has that label. Equal cosines
/// are in the order of the rows. Takes rows x rows x width operations.
std::vector<size_t> ranks_of_first_match(const VectorSamples& samples);

/// recall@1, recall@5, recall@10: the share of rows with one of their label among the k nearest.
std::vector<Metric> retrieval_metrics(const std::vector<size_t>& ranks);
/// `ranks` must outlive the metric.
Metric recall_metric(const std::vector<size_t>& ranks, size_t k);

}  // namespace serin::evaluation
