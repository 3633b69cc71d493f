// batch_curve_test.cc: how many rows are worth waiting for.

#include "runtime/serving/scheduling/batch_curve.h"

#include <gtest/gtest.h>

namespace serin::serving {
namespace {

using namespace std::chrono_literals;

BatchCurve learned(auto time_of) {
  BatchCurve curve;
  for (int round = 0; round < 3; ++round)
    for (int64_t rows = 1; rows <= 32; rows *= 2) curve.learn(rows, time_of(rows));
  return curve;
}

TEST(BatchCurve, AStraightLineGainsNothingSoRequestsGoOneByOne) {
  const BatchCurve curve = learned([](int64_t rows) { return 10ms * rows; });
  EXPECT_EQ(curve.choose(32, 32), 1);
}

TEST(BatchCurve, AFlatCurveTakesAllThatWaits) {
  const BatchCurve curve = learned([](int64_t) { return 10ms; });
  EXPECT_EQ(curve.choose(32, 32), 32);
  EXPECT_EQ(curve.choose(20, 32), 20);
  EXPECT_EQ(curve.choose(20, 8), 8);
}

TEST(BatchCurve, AKneeIsFound) {
  const BatchCurve curve = learned([](int64_t rows) { return rows <= 4 ? 10ms : 10ms * (rows / 4); });
  EXPECT_EQ(curve.choose(32, 32), 4);
  EXPECT_EQ(curve.choose(2, 32), 2);
}

TEST(BatchCurve, PaddingCounts) {
  const BatchCurve flat = learned([](int64_t) { return 10ms; });
  EXPECT_EQ(flat.choose(17, 32), 17) << "half of the batch is padding, which costs nothing";
  const BatchCurve steps = learned([](int64_t rows) { return rows <= 16 ? 10ms : 20ms; });
  EXPECT_EQ(steps.choose(17, 32), 16) << "one row more would cost as much as sixteen";
  EXPECT_EQ(steps.choose(32, 32), 16);
}

TEST(BatchCurve, TheNextSizeIsTriedForAsLongAsTheLastOneWasWorthIt) {
  BatchCurve curve;
  EXPECT_EQ(curve.choose(16, 32), 1);
  for (int i = 0; i < 3; ++i) curve.learn(1, 10ms);
  EXPECT_EQ(curve.choose(16, 32), 2);
  for (int i = 0; i < 3; ++i) curve.learn(2, 11ms);
  EXPECT_EQ(curve.choose(16, 32), 4);
  EXPECT_EQ(curve.choose(3, 32), 3);
  for (int i = 0; i < 3; ++i) curve.learn(4, 22ms);
  EXPECT_EQ(curve.choose(16, 32), 2) << "four rows cost as much as twice two: no larger size is tried";
}

TEST(BatchCurve, BucketsArePowersOfTwo) {
  EXPECT_EQ(BatchCurve::bucket_of(1), 0u);
  EXPECT_EQ(BatchCurve::bucket_of(2), 1u);
  EXPECT_EQ(BatchCurve::bucket_of(3), 2u);
  EXPECT_EQ(BatchCurve::bucket_of(4096), 12u);
  EXPECT_EQ(BatchCurve::bucket_of(int64_t{1} << 20), 20u);
  EXPECT_EQ(BatchCurve::bucket_of(int64_t{1} << 40), 20u) << "of models without a limit";
  EXPECT_EQ(BatchCurve::rows_of(5), 32);
}

TEST(BatchCurve, KnowsTheSizesThatWereSeenAndThoseBelowThemInTheSameBucket) {
  BatchCurve curve;
  EXPECT_FALSE(curve.knows(1));
  curve.learn(8, 1ms);
  EXPECT_TRUE(curve.knows(8));
  EXPECT_TRUE(curve.knows(5));
  EXPECT_FALSE(curve.knows(4));
  EXPECT_FALSE(curve.knows(9));
}

}  // namespace
}  // namespace serin::serving
