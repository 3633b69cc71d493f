// classification.h: metrics of a classifier. The definitions are scikit-learn's; the tests compare with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/evaluation/metric.h"

namespace serin::evaluation {

struct ClassSamples {
  std::vector<std::string> classes;
  std::vector<int32_t> truth;   ///< of each row
  std::vector<int32_t> ranked;  ///< of each row, `depth` classes, the best first; -1: none
  size_t depth = 1;
  std::vector<float> confidence;  ///< score of the best; empty: unknown
  std::vector<float> scores;      ///< of each row and class; empty: unknown
  bool probabilities = false;     ///< scores are from 0 to 1 and their sum is 1

  size_t rows() const { return truth.size(); }
  int32_t predicted(uint32_t row) const { return ranked[row * depth]; }
};

/// Makes top1, the averages precision_macro, recall_macro, f1_macro and the same _micro, and precision[c], recall[c], f1[c] of each class c.
/// Scores add auc: of several classes, the mean of each against the rest. Probabilities add log_loss and ece. `samples` must outlive the
/// metrics.
std::vector<Metric> classification_metrics(const ClassSamples& samples);
/// The true class is among the k best. Requires k <= depth.
Metric top_k_metric(const ClassSamples& samples, size_t k);

/// Counts of rows, [truth, predicted].
std::vector<int64_t> confusion_matrix(const ClassSamples& samples, RowList rows);

/// Rows by the confidence of the answer, in bins of equal width, the upper end included.
struct CalibrationBin {
  int64_t rows = 0;
  double confidence = 0, accuracy = 0;  ///< means
};
inline constexpr size_t kCalibrationBins = 15;
std::vector<CalibrationBin> calibration(const ClassSamples& samples, RowList rows);

/// Makes probabilities of scores, in place.
void softmax_rows(std::vector<float>& scores, size_t classes);
bool are_probabilities(const std::vector<float>& scores, size_t classes);
/// Fills in `ranked` and `confidence` from the scores; equal scores are in the order of the classes.
void rank_scores(ClassSamples& samples, size_t depth);

}  // namespace serin::evaluation
