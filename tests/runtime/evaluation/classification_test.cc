// Metrics at their edges. tests/e2e/offline/test_eval.py compares them with scikit-learn.

#include "runtime/evaluation/classification.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/evaluation/regression.h"
#include "runtime/evaluation/text_errors.h"

namespace serin::evaluation {
namespace {

double value_of(const std::vector<Metric>& metrics, std::string_view name, RowList rows) {
  for (const Metric& metric : metrics)
    if (metric.name == name) return metric.value(rows);
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

ClassSamples three_classes() {
  ClassSamples samples{.classes = {"a", "b", "c"}, .truth = {0, 1, 2, 1}, .ranked = {}, .confidence = {}, .scores = {}};
  samples.scores = {0.7F, 0.2F, 0.1F, 0.5F, 0.5F, 0.0F, 0.1F, 0.3F, 0.6F, 0.2F, 0.5F, 0.3F};
  samples.probabilities = are_probabilities(samples.scores, 3);
  rank_scores(samples, 2);
  return samples;
}

TEST(Classification, EqualScoresAreInTheOrderOfTheClasses) {
  const ClassSamples samples = three_classes();
  EXPECT_EQ(samples.predicted(1), 0);
  EXPECT_EQ(samples.ranked[3], 1);
  EXPECT_DOUBLE_EQ(top_k_metric(samples, 1).value(all_rows(4)), 0.75);
  EXPECT_DOUBLE_EQ(top_k_metric(samples, 2).value(all_rows(4)), 1);
}

TEST(Classification, ClassesThatRowsDoNotHaveAreLeftOut) {
  const ClassSamples samples = three_classes();
  const auto metrics = classification_metrics(samples);
  const std::vector<uint32_t> one{0};
  EXPECT_DOUBLE_EQ(value_of(metrics, "f1_macro", one), 1);
  EXPECT_TRUE(std::isnan(value_of(metrics, "auc", one)));  // nothing to be told apart
  EXPECT_DOUBLE_EQ(value_of(metrics, "recall[b]", all_rows(4)), 0.5);
  EXPECT_DOUBLE_EQ(value_of(metrics, "precision[a]", all_rows(4)), 0.5);
}

TEST(Classification, ConfusionAndCalibration) {
  const ClassSamples samples = three_classes();
  EXPECT_EQ(confusion_matrix(samples, all_rows(4)), (std::vector<int64_t>{1, 0, 0, 1, 1, 0, 0, 0, 1}));
  int64_t rows = 0;
  for (const CalibrationBin& bin : calibration(samples, all_rows(4))) rows += bin.rows;
  EXPECT_EQ(rows, 4);
}

TEST(Classification, SoftmaxAndWhatProbabilitiesAre) {
  std::vector<float> scores{1000, 1000, -1000, -1000};
  EXPECT_FALSE(are_probabilities(scores, 2));
  softmax_rows(scores, 2);
  EXPECT_EQ(scores, (std::vector<float>{0.5F, 0.5F, 0.5F, 0.5F}));
  EXPECT_TRUE(are_probabilities(scores, 2));
  EXPECT_FALSE(are_probabilities({std::nanf(""), 1}, 2));
}

TEST(Regression, ConstantTruthHasAnR2AsScikitLearn) {
  const NumberSamples exact{.outputs = 1, .truth = {2, 2}, .predicted = {2, 2}}, wrong{.outputs = 1, .truth = {2, 2}, .predicted = {2, 3}};
  EXPECT_EQ(value_of(regression_metrics(exact), "r2", all_rows(2)), 1);
  EXPECT_EQ(value_of(regression_metrics(wrong), "r2", all_rows(2)), 0);
  EXPECT_EQ(value_of(regression_metrics(wrong), "mae", all_rows(2)), 0.5);
  EXPECT_TRUE(std::isnan(value_of(regression_metrics(wrong), "r2", std::vector<uint32_t>{0})));
}

TEST(TextErrors, WordsAndCharacters) {
  const TextSamples samples{.truth = {"the cat sat", "caf\xC3\xA9", "", "same"}, .predicted = {"the  bat", "cafe", "x", "same"}};
  const auto metrics = text_metrics(samples);
  EXPECT_DOUBLE_EQ(value_of(metrics, "wer", std::vector<uint32_t>{0}), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value_of(metrics, "cer", std::vector<uint32_t>{1}), 0.25);  // one letter of four, though of two bytes
  EXPECT_TRUE(std::isnan(value_of(metrics, "wer", std::vector<uint32_t>{2})));
  EXPECT_DOUBLE_EQ(value_of(metrics, "wer", all_rows(4)), 4.0 / 5);
  EXPECT_DOUBLE_EQ(value_of(metrics, "exact", all_rows(4)), 0.25);
}

}  // namespace
}  // namespace serin::evaluation
