#include "runtime/evaluation/segmentation.h"

#include <cmath>
#include <limits>

namespace serin::evaluation {
namespace {

struct PixelSums {
  double truth = 0, predicted = 0, right = 0;

  bool occurs() const { return truth + predicted > 0; }
  double iou() const { return right / (truth + predicted - right); }
  double dice() const { return 2 * right / (truth + predicted); }
};

PixelSums pixel_sums(const PixelSamples& samples, RowList rows, size_t of_class) {
  PixelSums sums;
  for (const uint32_t row : rows) {
    const size_t at = row * samples.classes.size() + of_class;
    sums.truth += samples.truth[at];
    sums.predicted += samples.predicted[at];
    sums.right += samples.right[at];
  }
  return sums;
}

/// The mean over the classes that occur; NaN: none does.
template <class Value>
double mean_over_classes(const PixelSamples& samples, RowList rows, Value value) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < samples.classes.size(); ++i) {
    const PixelSums sums = pixel_sums(samples, rows, i);
    if (!sums.occurs()) continue;
    sum += value(sums);
    ++count;
  }
  return sum / static_cast<double>(count);
}

double pixel_accuracy(const PixelSamples& samples, RowList rows) {
  double truth = 0, right = 0;
  for (size_t i = 0; i < samples.classes.size(); ++i) {
    const PixelSums sums = pixel_sums(samples, rows, i);
    truth += sums.truth;
    right += sums.right;
  }
  return right / truth;
}

}  // namespace

std::vector<Metric> segmentation_metrics(const PixelSamples& samples) {
  std::vector<Metric> metrics;
  metrics.push_back(
      {"miou", true, [&samples](RowList rows) { return mean_over_classes(samples, rows, [](const PixelSums& s) { return s.iou(); }); }});
  metrics.push_back({"pixel_accuracy", true, [&samples](RowList rows) { return pixel_accuracy(samples, rows); }});
  metrics.push_back(
      {"dice", true, [&samples](RowList rows) { return mean_over_classes(samples, rows, [](const PixelSums& s) { return s.dice(); }); }});
  for (size_t i = 0; i < samples.classes.size(); ++i)
    metrics.push_back({"iou[" + samples.classes[i] + "]", true, [&samples, i](RowList rows) {
                         const PixelSums sums = pixel_sums(samples, rows, i);
                         return sums.occurs() ? sums.iou() : std::numeric_limits<double>::quiet_NaN();
                       }});
  return metrics;
}

}  // namespace serin::evaluation
