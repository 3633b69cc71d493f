#include "runtime/evaluation/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace serin::evaluation {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Counts {
  double both = 0, truth = 0, predicted = 0;  // rows of a class that are found, that there are, that were said to be
  double precision() const { return predicted > 0 ? both / predicted : 0; }
  double recall() const { return truth > 0 ? both / truth : 0; }
  double f1() const { return truth + predicted > 0 ? 2 * both / (truth + predicted) : 0; }
};

std::vector<Counts> counts_of(const ClassSamples& samples, RowList rows) {
  std::vector<Counts> counts(samples.classes.size());
  for (const uint32_t row : rows) {
    const int32_t truth = samples.truth[row], predicted = samples.predicted(row);
    ++counts[static_cast<size_t>(truth)].truth;
    if (predicted >= 0) ++counts[static_cast<size_t>(predicted)].predicted;
    if (truth == predicted) ++counts[static_cast<size_t>(truth)].both;
  }
  return counts;
}

using Of = double (Counts::*)() const;

/// The mean over the classes that the rows have, as truth or as answer.
double macro(const ClassSamples& samples, RowList rows, Of of) {
  double sum = 0, classes = 0;
  for (const Counts& each : counts_of(samples, rows)) {
    if (each.truth + each.predicted == 0) continue;
    sum += (each.*of)();
    ++classes;
  }
  return classes > 0 ? sum / classes : kNaN;
}

double micro(const ClassSamples& samples, RowList rows, Of of) {
  Counts all;
  for (const Counts& each : counts_of(samples, rows)) {
    all.both += each.both;
    all.truth += each.truth;
    all.predicted += each.predicted;
  }
  return (all.*of)();
}

/// The chance that a row of the class has a higher score than another row; equal scores count half (Mann and Whitney).
double auc_of_class(const ClassSamples& samples, RowList rows, size_t of) {
  const size_t classes = samples.classes.size();
  std::vector<std::pair<float, bool>> scored;
  scored.reserve(rows.size());
  for (const uint32_t row : rows) scored.emplace_back(samples.scores[row * classes + of], samples.truth[row] == static_cast<int32_t>(of));
  std::ranges::sort(scored, {}, &std::pair<float, bool>::first);
  double inside = 0, outside = 0, wins = 0;
  for (size_t begin = 0, end = 0; begin < scored.size(); begin = end) {
    double equal_inside = 0, equal_outside = 0;
    for (end = begin; end < scored.size() && scored[end].first == scored[begin].first; ++end)
      ++(scored[end].second ? equal_inside : equal_outside);
    wins += equal_inside * (outside + equal_outside / 2);
    inside += equal_inside;
    outside += equal_outside;
  }
  return inside > 0 && outside > 0 ? wins / (inside * outside) : kNaN;
}

double auc(const ClassSamples& samples, RowList rows) {
  if (samples.classes.size() == 2) return auc_of_class(samples, rows, 1);
  double sum = 0;
  for (size_t of = 0; of < samples.classes.size(); ++of) sum += auc_of_class(samples, rows, of);
  return sum / static_cast<double>(samples.classes.size());
}

double log_loss(const ClassSamples& samples, RowList rows) {
  constexpr double kLeast = std::numeric_limits<float>::epsilon();  // as scikit-learn clips floats
  double sum = 0;
  for (const uint32_t row : rows) {
    const double p = samples.scores[row * samples.classes.size() + static_cast<size_t>(samples.truth[row])];
    sum -= std::log(std::clamp(p, kLeast, 1 - kLeast));
  }
  return sum / static_cast<double>(rows.size());
}

double ece(const ClassSamples& samples, RowList rows) {
  double sum = 0;
  for (const CalibrationBin& bin : calibration(samples, rows))
    sum += static_cast<double>(bin.rows) * std::abs(bin.accuracy - bin.confidence);
  return sum / static_cast<double>(rows.size());
}

}  // namespace

Metric top_k_metric(const ClassSamples& samples, size_t k) {
  return share_metric("top" + std::to_string(k), [&samples, k](uint32_t row) {
    const auto* const first = samples.ranked.data() + row * samples.depth;
    return std::find(first, first + k, samples.truth[row]) != first + k;
  });
}

std::vector<Metric> classification_metrics(const ClassSamples& samples) {
  std::vector<Metric> metrics{top_k_metric(samples, 1)};
  const std::pair<const char*, Of> kinds[] = {{"precision", &Counts::precision}, {"recall", &Counts::recall}, {"f1", &Counts::f1}};
  for (const auto& [name, of] : kinds) {
    metrics.push_back({std::string(name) + "_macro", true, [&samples, of = of](RowList rows) { return macro(samples, rows, of); }});
    metrics.push_back({std::string(name) + "_micro", true, [&samples, of = of](RowList rows) { return micro(samples, rows, of); }});
  }
  if (!samples.scores.empty()) metrics.push_back({"auc", true, [&samples](RowList rows) { return auc(samples, rows); }});
  if (samples.probabilities) {
    if (!samples.scores.empty()) metrics.push_back({"log_loss", false, [&samples](RowList rows) { return log_loss(samples, rows); }});
    metrics.push_back({"ece", false, [&samples](RowList rows) { return ece(samples, rows); }});
  }
  for (size_t at = 0; at < samples.classes.size(); ++at)
    for (const auto& [name, of] : kinds)
      metrics.push_back({std::string(name) + "[" + samples.classes[at] + "]", true,
                         [&samples, at, of = of](RowList rows) { return (counts_of(samples, rows)[at].*of)(); }});
  return metrics;
}

std::vector<int64_t> confusion_matrix(const ClassSamples& samples, RowList rows) {
  const size_t classes = samples.classes.size();
  std::vector<int64_t> counts(classes * classes);
  for (const uint32_t row : rows)
    if (samples.predicted(row) >= 0)
      ++counts[static_cast<size_t>(samples.truth[row]) * classes + static_cast<size_t>(samples.predicted(row))];
  return counts;
}

std::vector<CalibrationBin> calibration(const ClassSamples& samples, RowList rows) {
  std::vector<CalibrationBin> bins(kCalibrationBins);
  for (const uint32_t row : rows) {
    const double confidence = samples.confidence[row];
    const double at = std::ceil(confidence * kCalibrationBins) - 1;
    CalibrationBin& bin = bins[static_cast<size_t>(std::clamp(at, 0.0, kCalibrationBins - 1.0))];
    ++bin.rows;
    bin.confidence += confidence;
    bin.accuracy += samples.predicted(row) == samples.truth[row] ? 1 : 0;
  }
  for (CalibrationBin& bin : bins) {
    if (bin.rows == 0) continue;
    bin.confidence /= static_cast<double>(bin.rows);
    bin.accuracy /= static_cast<double>(bin.rows);
  }
  return bins;
}

void softmax_rows(std::vector<float>& scores, size_t classes) {
  for (auto row = scores.begin(); row != scores.end(); row += static_cast<std::ptrdiff_t>(classes)) {
    const auto end = row + static_cast<std::ptrdiff_t>(classes);
    const double most = *std::max_element(row, end);
    double sum = 0;
    for (auto score = row; score != end; ++score) sum += std::exp(*score - most);
    for (auto score = row; score != end; ++score) *score = static_cast<float>(std::exp(*score - most) / sum);
  }
}

bool are_probabilities(const std::vector<float>& scores, size_t classes) {
  constexpr double kRounding = 1e-3;
  for (size_t row = 0; row < scores.size(); row += classes) {
    double sum = 0;
    for (size_t at = row; at < row + classes; ++at) {
      if (!(scores[at] >= 0 && scores[at] <= 1 + kRounding)) return false;
      sum += scores[at];
    }
    if (std::abs(sum - 1) > kRounding) return false;
  }
  return true;
}

void rank_scores(ClassSamples& samples, size_t depth) {
  const size_t classes = samples.classes.size(), rows = samples.rows();
  samples.depth = depth;
  samples.ranked.assign(rows * depth, -1);
  samples.confidence.resize(rows);
  std::vector<int32_t> order(classes);
  for (size_t row = 0; row < rows; ++row) {
    const float* const scores = samples.scores.data() + row * classes;
    std::iota(order.begin(), order.end(), 0);
    const auto kept = order.begin() + static_cast<std::ptrdiff_t>(std::min(depth, classes));
    std::partial_sort(order.begin(), kept, order.end(),
                      [&](int32_t a, int32_t b) { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); });
    std::copy(order.begin(), kept, samples.ranked.begin() + static_cast<std::ptrdiff_t>(row * depth));
    samples.confidence[row] = scores[order.front()];
  }
}

}  // namespace serin::evaluation
