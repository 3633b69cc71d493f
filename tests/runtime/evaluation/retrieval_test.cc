// Neighbours by the cosine. tests/e2e/offline/test_eval.py compares with NumPy.

#include "runtime/evaluation/retrieval.h"

#include <gtest/gtest.h>

namespace serin::evaluation {
namespace {

TEST(Retrieval, CountsTheNearerOnesOfOtherLabels) {
  // Directions at 0, 10, 20, 30 degrees, and one of no length.
  const VectorSamples samples{
      .width = 2, .vectors = {1, 0, 98.5F, 17.4F, 0.94F, 0.342F, 0.866F, 0.5F, 0, 0}, .truth = {"a", "b", "a", "b", "c"}};
  EXPECT_EQ(ranks_of_first_match(samples), (std::vector<size_t>{1, 2, 2, 1, 5}));
}

TEST(Retrieval, ARowWithoutItsLikeIsNotFound) {
  const std::vector<size_t> ranks{0, 3, 3};  // of three rows: the last two have no match
  EXPECT_DOUBLE_EQ(recall_metric(ranks, 10).value(all_rows(3)), 1.0 / 3);
}

TEST(Retrieval, EqualCosinesAreInTheOrderOfTheRows) {
  const VectorSamples samples{.width = 1, .vectors = {1, 2, 3}, .truth = {"a", "b", "a"}};
  EXPECT_EQ(ranks_of_first_match(samples), (std::vector<size_t>{1, 3, 0}));
}

}  // namespace
}  // namespace serin::evaluation
