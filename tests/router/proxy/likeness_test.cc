// likeness_test.cc: what counts as the same numbers, and what as entirely another label.

#include "router/proxy/likeness.h"

#include <gtest/gtest.h>

#include <vector>

namespace serin::router {
namespace {

using Row = std::vector<double>;

Likeness of(const Row& stable, const Row& canary) { return likeness_of(stable, canary); }

TEST(Likeness, OfAnotherBuildIsTheSame) {
  EXPECT_EQ(of({0.62, 0.31, 0.07}, {0.62, 0.31, 0.07}).same, true);
  EXPECT_EQ(of({0.62, 0.31, 0.07}, {0.6203, 0.3098, 0.06996}).same, true) << "rounding";
  EXPECT_EQ(of({5.1, -3.2, 0.00001}, {5.1, -3.2, 0.00003}).same, true) << "what a subtraction left";
  EXPECT_EQ(of({0.62, 0.31, 0.07}, {0.615, 0.315, 0.07}).same, false);
  EXPECT_EQ(of({0.62, 0.31, 0.07}, {0.07, 0.31, 0.62}).same, false);
}

TEST(Likeness, OfRowsThatTwoModelsWouldShareSaysNothing) {
  for (const Row& row : {Row{1, 0, 0}, Row{3, 0, 7}, Row{0, 0, 0}, Row{0.999, 0.0007, 0.0003}, Row{0.998, 0.995, 0.9999},
                         Row{-0.9999, 0.9998, -0.999}, Row{0.6, 0.4}, Row{0.7, 0.1, 0.2}, Row{14.0 / 15, 1.0 / 15}, Row{2.0 / 3, 1.0 / 3},
                         Row{5.0 / 7, 2.0 / 7}, Row{0.42}, Row{0.9999999, 3e-9, 2e-12}})
    EXPECT_FALSE(of(row, row).same) << row[0];
  EXPECT_EQ(of({0.9, 0.01, 0.09}, {0.9, 0.01, 0.09}).same, true);
  EXPECT_FALSE(of({}, {}).same);
  EXPECT_FALSE(of({0.3, 0.7}, {0.3, 0.3, 0.4}).same) << "not of one length";
}

TEST(Likeness, IsFarWhereNoRoundingAndNoNearTieExplainsTheLabel) {
  EXPECT_TRUE(of({0.62, 0.31, 0.07}, {0.1, 0.8, 0.1}).far);
  EXPECT_TRUE(of({21, 20, 19}, {19, 20, 21}).far) << "scores with an offset";
  EXPECT_TRUE(of({1, 0, 0}, {0, 0, 1}).far) << "also of rows that say nothing else";
  EXPECT_FALSE(of({0.62, 0.31, 0.07}, {0.51, 0.45, 0.04}).far) << "the same label";
  EXPECT_FALSE(of({0.4502, 0.45, 0.0998}, {0.45, 0.4502, 0.0998}).far) << "a near tie";
  EXPECT_FALSE(of({0.5, 0.45, 0.05}, {0.45, 0.5, 0.05}).far) << "new weights";
  EXPECT_FALSE(of({0.5, 0.5}, {0.5, 0.5}).far);
}

TEST(Likeness, TakesANearTieOfTwoClassesByTheUsualSpread) {
  UsualSpread usual;
  for (int i = 0; i < 1000; ++i) usual.learn(i % 2 == 0 ? 0.9 : 0.5);
  EXPECT_NEAR(usual.value(), 0.7, 0.05);
  const Row stable{0.505, 0.495}, canary{0.495, 0.505};
  EXPECT_TRUE(likeness_of(stable, canary).far);
  EXPECT_FALSE(likeness_of(stable, canary, usual.value()).far);
  EXPECT_TRUE(likeness_of({{0.9, 0.1}}, {{0.2, 0.8}}, usual.value()).far);
  usual.begin(7);
  EXPECT_EQ(usual.value(), 0) << "another rollout, perhaps with another scale";
  usual.learn(20);
  usual.begin(7);
  EXPECT_EQ(usual.value(), 20);
}

}  // namespace
}  // namespace serin::router
