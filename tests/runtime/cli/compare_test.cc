// What counts as equal, and where the largest error is.

#include "runtime/cli/tools/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace serin::cli {
namespace {

using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
Comparison compared(std::vector<T> actual, std::vector<T> expected, const Tolerance& tolerance = {}) {
  const auto view = [](std::vector<T>& values) {
    return TensorView{dtype_of<T>(), Shape{static_cast<int64_t>(values.size())}, values.data()};
  };
  return compare(view(actual), view(expected), tolerance);
}

TEST(Compare, ToleranceGrowsWithTheElementAndWithTheLargest) {
  EXPECT_TRUE(compared<double>({1.00009}, {1}).match);
  EXPECT_FALSE(compared<double>({1.0002}, {1}).match);
  EXPECT_TRUE(compared<double>({0.0009, 100}, {0, 100}).match);  // 1e-5 of 100
  EXPECT_FALSE(compared<double>({0.0011, 100}, {0, 100}).match);
  EXPECT_FALSE(compared<double>({0.0009, 100}, {0, 100}, {.absolute_atol = true}).match);
}

TEST(Compare, WhatIsNotFiniteMustBeTheSame) {
  EXPECT_TRUE(compared<double>({kNan, kInf, -kInf}, {kNan, kInf, -kInf}).match);
  EXPECT_FALSE(compared<double>({kInf}, {-kInf}).match);
  EXPECT_FALSE(compared<double>({1}, {kNan}).match);
  EXPECT_FALSE(compared<double>({1}, {kInf}).match);
  EXPECT_FALSE(compared<double>({1e30, 5}, {kInf, 1}).match);  // an infinity does not widen the tolerance of the others
}

TEST(Compare, IntegersExactly) {
  EXPECT_TRUE(compared<int64_t>({1'000'000}, {1'000'000}).match);
  EXPECT_FALSE(compared<int64_t>({1'000'001}, {1'000'000}).match);
  const int64_t large = int64_t{1} << 60;  // a double does not tell these two apart
  EXPECT_FALSE(compared<int64_t>({large + 1}, {large}).match);
}

TEST(Compare, TellsOfDifferencesThatAreNoNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(compared<float>({nan, 2}, {1, 2}).not_finite);
  EXPECT_FALSE(compared<float>({nan, 3}, {nan, 2}).not_finite);  // equal, and another one that is a number
}

TEST(Compare, SaysWhereTheLargestErrorsAre) {
  const auto result = compared<float>({1, 2.5F, 101}, {1, 2, 100});
  EXPECT_FALSE(result.match);
  EXPECT_EQ(result.mismatches, 2);
  EXPECT_EQ(result.max_absolute_at, 2);
  EXPECT_FLOAT_EQ(result.max_absolute, 1);
  EXPECT_EQ(result.max_relative_at, 1);
  EXPECT_FLOAT_EQ(result.max_relative, 0.25);
  EXPECT_FLOAT_EQ(result.relative_l2, std::sqrt(1.25 / 10005));
  EXPECT_THAT(result.why_not, HasSubstr("2 of 3 elements differ, first at [1]: 2.5, expected 2"));
}

TEST(Compare, ShapeAndDtype) {
  float numbers[6] = {};
  EXPECT_THAT(compare({DType::kFloat32, Shape{2, 3}, numbers}, {DType::kFloat32, Shape{3, 2}, numbers}, {}).why_not,
              HasSubstr("shape [2,3], expected [3,2]"));
  EXPECT_THAT(compare({DType::kFloat32, Shape{2}, numbers}, {DType::kInt32, Shape{2}, numbers}, {}).why_not,
              HasSubstr("dtype f32, expected i32"));
}

TEST(Compare, HalvesByValue) {
  uint16_t a[1] = {0x3c00}, b[1] = {0x3c01};  // 1 and the next above it
  const TensorView x{DType::kFloat16, Shape{1}, a}, y{DType::kFloat16, Shape{1}, b};
  EXPECT_FALSE(compare(x, y, {}).match);
  EXPECT_TRUE(compare(x, y, {.rtol = 1e-3}).match);
}

TEST(Compare, StringsExactly) {
  std::string a[2] = {"one", "two"}, b[2] = {"one", "Two"};
  const TensorView x{DType::kString, Shape{2}, a}, y{DType::kString, Shape{2}, b};
  EXPECT_TRUE(compare(x, x, {}).match);
  EXPECT_THAT(compare(x, y, {}).why_not, HasSubstr("1 of 2 strings differ, first at [1]: 'two', expected 'Two'"));
}

TEST(Position, IsRowMajor) {
  EXPECT_EQ(position(Shape{2, 3, 4}, 23), "[1,2,3]");
  EXPECT_EQ(position(Shape{}, 0), "[]");
}

}  // namespace
}  // namespace serin::cli
