// segmentation.h: how well the pixels of pictures are classified. The definitions are scikit-learn's of all pixels together: iou is
// jaccard_score, dice is f1_score, both with the mean over the classes that occur.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/evaluation/metric.h"

namespace serin::evaluation {

/// Numbers of pixels; of each picture (row after row) and class.
struct PixelSamples {
  std::vector<std::string> classes;             ///< names
  std::vector<double> truth, predicted, right;  ///< that have the class by their label, by the answer, and by both

  size_t rows() const { return classes.empty() ? 0 : truth.size() / classes.size(); }
};

/// miou, pixel_accuracy, dice, and iou[NAME] of each class. `samples` must outlive the metrics.
std::vector<Metric> segmentation_metrics(const PixelSamples& samples);

}  // namespace serin::evaluation
