// Small cases by hand. tests/e2e/offline/test_eval_detection.py compares with pycocotools.

#include "runtime/evaluation/detection.h"

#include <gtest/gtest.h>

#include <cmath>

namespace serin::evaluation {
namespace {

double map50(const DetectionSamples& samples) { return detection_metrics(samples)[1].value(all_rows(samples.truth.size())); }

TEST(Detection, OverlapsOfBoxesAndCrowds) {
  const Box box{0, 0, 10, 10}, half{5, 0, 10, 10}, apart{20, 0, 1, 1};
  EXPECT_DOUBLE_EQ(overlap(box, half), 50.0 / 150);
  EXPECT_DOUBLE_EQ(overlap(box, apart), 0);
  EXPECT_DOUBLE_EQ(overlap(box, {5, 0, 10, 10, 0, 0, true}), 0.5);
  EXPECT_DOUBLE_EQ(overlap({0, 0, 0, 0}, {0, 0, 0, 0}), 0);
}

TEST(Detection, ASecondBoxOfOneThingIsWrong) {
  const Box thing{0, 0, 10, 10, 0};
  DetectionSamples samples{
      .categories = {"x"}, .pictures = {1}, .truth = {{thing}}, .found = {{{0, 0, 10, 10, 0, 0.9}, {0, 0, 10, 9, 0, 0.8}}}};
  EXPECT_NEAR(map50(samples), 1, 1e-12);  // the wrong one comes after all are found
  samples.found[0][1].score = 0.95;
  EXPECT_NEAR(map50(samples), 1, 1e-12);  // now that one is right, by 0.9
  samples.truth[0].push_back({50, 50, 5, 5, 0});
  EXPECT_NEAR(map50(samples), 51.0 / 101, 1e-12);  // half of them are found: recalls 0 to 0.5
}

TEST(Detection, CrowdsAreNeitherFoundNorMissed) {
  const DetectionSamples samples{.categories = {"x"},
                                 .pictures = {1},
                                 .truth = {{{0, 0, 10, 10, 0}, {20, 20, 50, 50, 0, 0, true}}},
                                 .found = {{{21, 21, 5, 5, 0, 0.99}, {30, 30, 5, 5, 0, 0.98}, {0, 0, 10, 10, 0, 0.5}}}};
  EXPECT_NEAR(map50(samples), 1, 1e-12);
}

TEST(Detection, WithoutTruthThereIsNoPrecision) {
  const DetectionSamples samples{.categories = {"x"}, .pictures = {1}, .truth = {{}}, .found = {{{0, 0, 1, 1, 0, 0.9}}}};
  EXPECT_TRUE(std::isnan(map50(samples)));
}

}  // namespace
}  // namespace serin::evaluation
