// The reference kernels against values worked out by hand: they are the oracle of all other tests, so nothing here is computed by other kernels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

std::vector<float> run_floats(const Op& op, std::vector<Tensor> inputs, const Shape& y) {
  return run_reference({.op = op, .inputs = std::move(inputs), .outputs = {{DType::kFloat32, y}}})[0].values<float>();
}
std::vector<int64_t> run_longs(const Op& op, std::vector<Tensor> inputs, const Shape& y) {
  return run_reference({.op = op, .inputs = std::move(inputs), .outputs = {{DType::kInt64, y}}})[0].values<int64_t>();
}

TEST(Reference, BinaryBroadcastsFromTheRight) {
  const Tensor column = longs({2, 1}, {10, 20});
  const Tensor row = longs({3}, {1, 2, 3});
  EXPECT_THAT(run_longs(Binary{BinaryFn::kAdd}, {column, row}, {2, 3}), ElementsAre(11, 12, 13, 21, 22, 23));
}

TEST(Reference, ComparesAnswerBool) {
  const Case c{.op = Binary{BinaryFn::kLess}, .inputs = {floats({3}, {1, kNan, 3}), floats({}, {2})}, .outputs = {{DType::kBool, {3}}}};
  EXPECT_THAT(run_reference(c)[0].values<bool>(), ElementsAre(true, false, false));
}

TEST(Reference, SelectTakesFromEither) {
  const Tensor condition({2, 1}, std::vector<bool>{true, false});
  EXPECT_THAT(run_longs(Select{}, {condition, longs({2}, {1, 2}), longs({1}, {9})}, {2, 2}), ElementsAre(1, 2, 9, 9));
}

TEST(Reference, MatMulOfTwoByThree) {
  const Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = floats({3, 2}, {7, 8, 9, 10, 11, 12});
  EXPECT_THAT(run_floats(MatMul{}, {a, b}, {2, 2}), ElementsAre(58, 64, 139, 154));
  const Tensor at = floats({3, 2}, {1, 4, 2, 5, 3, 6});
  const Tensor bt = floats({2, 3}, {7, 9, 11, 8, 10, 12});
  EXPECT_THAT(run_floats(MatMul{.transpose_a = true, .transpose_b = true}, {at, bt}, {2, 2}), ElementsAre(58, 64, 139, 154));
}

TEST(Reference, MatMulAddsBiasAndResidualBeforeTheActivation) {
  const MatMul op{.alpha = 0.5f, .bias = true, .epilogue = {.activation = UnaryFn::kRelu, .residual = true}};
  const Tensor a = floats({1, 2}, {2, 4}), b = floats({2, 2}, {1, -3, 1, -3});
  EXPECT_THAT(run_floats(op, {a, b, floats({2}, {1, 1}), floats({1, 2}, {10, 5})}, {1, 2}), ElementsAre(14, 0));
}

TEST(Reference, MatMulBroadcastsBatches) {
  const Tensor a = longs({2, 1, 1, 2}, {1, 2, 3, 4});
  const Tensor b = longs({3, 2, 1}, {1, 1, 10, 10, 100, 100});
  EXPECT_THAT(run_longs(MatMul{}, {a, b}, {2, 3, 1, 1}), ElementsAre(3, 30, 300, 7, 70, 700));
}

TEST(Reference, MatMulOverNothingIsZero) {
  EXPECT_THAT(run_floats(MatMul{}, {floats({1, 0}, {}), floats({0, 2}, {})}, {1, 2}), ElementsAre(0, 0));
}

TEST(Reference, ConvWithPaddingStrideAndDilation) {
  const Tensor x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor ones = floats({1, 1, 3, 3}, std::vector<float>(9, 1.f));
  EXPECT_THAT(run_floats(Conv{{1, 1}, {1, 1}, {1, 1, 1, 1}}, {x, ones}, {1, 1, 3, 3}), ElementsAre(12, 21, 16, 27, 45, 33, 24, 39, 28));
  EXPECT_THAT(run_floats(Conv{{2, 2}, {1, 1}, {1, 1, 1, 1}}, {x, ones}, {1, 1, 2, 2}), ElementsAre(12, 16, 24, 28));
  const Tensor corners = floats({1, 1, 2, 2}, {1, 10, 100, 1000});
  EXPECT_THAT(run_floats(Conv{{1, 1}, {2, 2}, {0, 0, 0, 0}}, {x, corners}, {1, 1, 1, 1}), ElementsAre(9731));
}

TEST(Reference, ConvInGroups) {
  const Tensor x = floats({1, 2, 2}, {1, 2, 3, 4});  // one spatial axis
  const Tensor weight = floats({2, 1, 1}, {10, 100});
  const Conv op{.strides = {1}, .dilations = {1}, .pads = {0, 0}, .group = 2, .bias = true};
  EXPECT_THAT(run_floats(op, {x, weight, floats({2}, {1, 2})}, {1, 2, 2}), ElementsAre(11, 21, 302, 402));
}

TEST(Reference, ConvOverThreeSpatialAxes) {
  const Tensor x = floats({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor ones = floats({1, 1, 2, 2, 2}, std::vector<float>(8, 1.f));
  EXPECT_THAT(run_floats(Conv{{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}}, {x, ones}, {1, 1, 1, 1, 1}), ElementsAre(36));
}

TEST(Reference, PoolCountsPaddingOnlyWhenAsked) {
  const Tensor x = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  Pool op{.average = true, .kernel = {2, 2}, .strides = {2, 2}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}};
  EXPECT_THAT(run_floats(op, {x}, {1, 1, 2, 2}), ElementsAre(1, 2, 3, 4));
  op.count_include_pad = true;
  EXPECT_THAT(run_floats(op, {x}, {1, 1, 2, 2}), ElementsAre(0.25, 0.5, 0.75, 1));
  op.average = false;
  EXPECT_THAT(run_floats(op, {floats({1, 1, 2, 2}, {-1, -2, kNan, -4})}, {1, 1, 2, 2}), ElementsAre(-1, -2, testing::IsNan(), -4));
}

TEST(Reference, PoolRoundedUpDoesNotCountBeyondThePadding) {
  // Five elements in windows of 3, rounded up: the last window reaches one past the padding.
  const Tensor x = floats({1, 1, 5}, {1, 2, 3, 4, 5});
  const Pool op{.average = true, .count_include_pad = true, .kernel = {3}, .strides = {3}, .dilations = {1}, .pads = {0, 0}};
  EXPECT_THAT(run_floats(op, {x}, {1, 1, 2}), ElementsAre(2, 4.5));
}

TEST(Reference, ReduceOverAnyAxes) {
  const Tensor x = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kSum, {0, 2}}, {x}, {2}), ElementsAre(14, 22));
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kMean, {1}}, {x}, {2, 1, 2}), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kProd, {0, 1, 2}}, {x}, {}), ElementsAre(40320));
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kL1, {0}}, {floats({2}, {-3, 4})}, {}), ElementsAre(7));
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kL2, {0}}, {floats({2}, {-3, 4})}, {}), ElementsAre(5));
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kSumSquare, {0}}, {floats({2}, {-3, 4})}, {}), ElementsAre(25));
  EXPECT_THAT(run_longs(Reduce{ReduceFn::kMean, {0}}, {longs({2}, {-3, 0})}, {}), ElementsAre(-1));  // truncated
}

TEST(Reference, ReduceOverNothingGivesTheNeutralElement) {
  const Tensor empty = floats({2, 0}, {});
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kSum, {1}}, {empty}, {2}), ElementsAre(0, 0));
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kProd, {1}}, {empty}, {2}), ElementsAre(1, 1));
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kMax, {1}}, {empty}, {2}), ElementsAre(-kInf, -kInf));
  EXPECT_THAT(run_floats(Reduce{ReduceFn::kMean, {1}}, {empty}, {2}), ElementsAre(testing::IsNan(), testing::IsNan()));
  const Case smallest{.op = Reduce{ReduceFn::kMax, {0}}, .inputs = {Tensor(DType::kInt8, {0})}, .outputs = {{DType::kInt8, {}}}};
  EXPECT_EQ(run_reference(smallest)[0].at(0), -128);
}

TEST(Reference, SoftmaxIsStableAndSumsToOne) {
  const auto y = run_floats(Softmax{-1}, {floats({2, 2}, {1000, 1000, 0, std::log(3.f)})}, {2, 2});
  EXPECT_THAT(y, testing::Pointwise(testing::FloatEq(), std::vector<float>{0.5f, 0.5f, 0.25f, 0.75f}));
  const auto columns = run_floats(Softmax{0}, {floats({2, 1}, {0, std::log(3.f)})}, {2, 1});
  EXPECT_THAT(columns, testing::Pointwise(testing::FloatEq(), std::vector<float>{0.25f, 0.75f}));
  const auto log = run_floats(Softmax{-1, true}, {floats({1, 2}, {-1000, 0})}, {1, 2});
  EXPECT_THAT(log, ElementsAre(-1000, 0));
}

TEST(Reference, LayerNormAndBatchNorm) {
  const auto y = run_floats(LayerNorm{.axis = -1, .epsilon = 0.f, .bias = true},
                            {floats({1, 2}, {1, 3}), floats({2}, {1, 2}), floats({2}, {0, 10})}, {1, 2});
  EXPECT_THAT(y, ElementsAre(-1, 12));
  const auto one = [](float v) { return floats({1}, {v}); };
  EXPECT_THAT(run_floats(BatchNorm{0.f}, {floats({2, 1, 1}, {5, 9}), one(3), one(1), one(5), one(4)}, {2, 1, 1}), ElementsAre(1, 7));
}

TEST(Reference, StridedCopyTransposesSlicesAndExpands) {
  const Tensor x = longs({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(run_longs(StridedCopy{0, {1, 3}}, {x}, {3, 2}), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(run_longs(StridedCopy{5, {-3, -2}}, {x}, {2, 2}), ElementsAre(5, 3, 2, 0));
  EXPECT_THAT(run_longs(StridedCopy{1, {0, 3}}, {x}, {2, 2}), ElementsAre(1, 4, 1, 4));
}

TEST(Reference, ConcatPadGather) {
  EXPECT_THAT(run_longs(Concat{1}, {longs({2, 1}, {1, 2}), longs({2, 2}, {3, 4, 5, 6})}, {2, 3}), ElementsAre(1, 3, 4, 2, 5, 6));
  const Tensor x = longs({3}, {1, 2, 3});
  EXPECT_THAT(run_longs(Pad{{1}, {2}}, {x, longs({}, {9})}, {6}), ElementsAre(9, 1, 2, 3, 9, 9));
  EXPECT_THAT(run_longs(Pad{{4}, {3}, Pad::Mode::kReflect}, {x}, {10}), ElementsAre(1, 2, 3, 2, 1, 2, 3, 2, 1, 2));
  EXPECT_THAT(run_longs(Pad{{2}, {1}, Pad::Mode::kEdge}, {x}, {6}), ElementsAre(1, 1, 1, 2, 3, 3));
  EXPECT_THAT(run_longs(Pad{{-1}, {1}}, {x}, {3}), ElementsAre(2, 3, 0));
  const Tensor rows = longs({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run_longs(Gather{0}, {rows, longs({2}, {-1, 0})}, {2, 2}), ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(run_longs(Gather{1}, {rows, longs({}, {1})}, {3}), ElementsAre(2, 4, 6));
}

TEST(Reference, GatherOutOfRangeIsAFaultThatNamesTheIndex) {
  for (const int64_t index : {3, -4}) {
    const Case c{.op = Gather{0}, .inputs = {longs({3, 2}, {1, 2, 3, 4, 5, 6}), longs({1}, {index})}, .outputs = {{DType::kInt64, {1, 2}}}};
    EXPECT_EQ(reference_fault(c), "index " + std::to_string(index) + " is out of range for axis 0 of size 3");
  }
}

TEST(Reference, ArgMaxOnTiesAndNan) {
  const Tensor x = longs({2, 3}, {1, 5, 5, 7, 2, 7});
  EXPECT_THAT(run_longs(ArgMax{.axis = 1}, {x}, {2}), ElementsAre(1, 0));
  EXPECT_THAT(run_longs(ArgMax{.axis = 1, .last = true}, {x}, {2}), ElementsAre(2, 2));
  EXPECT_THAT(run_longs(ArgMax{.axis = 0, .min = true}, {x}, {1, 3}), ElementsAre(0, 1, 0));
  EXPECT_THAT(run_longs(ArgMax{.axis = 0}, {floats({4}, {1, kNan, 9, kNan})}, {}), ElementsAre(1));
  const Case empty{.op = ArgMax{.axis = 0}, .inputs = {floats({0, 2}, {})}, .outputs = {{DType::kInt64, {2}}}};
  EXPECT_THAT(reference_fault(empty), HasSubstr("size 0"));
}

TEST(Reference, NonZeroSetsTheTrueShape) {
  const Case c{.op = NonZero{}, .inputs = {floats({2, 3}, {0, 1, 0, kNan, 0, -2})}, .outputs = {{DType::kInt64, {2, 6}}}};
  const Tensor y = run_reference(c)[0];
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_THAT(y.values<int64_t>(), ElementsAre(0, 1, 1, 1, 0, 2));
}

/// NaN first, as in TopK; zeros of both signs are equal, and among equals the lower index comes first.
TEST(Reference, SuppressionPutsEveryScoreInOneOrder) {
  const std::vector<float> scores = {1, kNan, 0, -0.f, 2, kNan, -kInf, 0, kInf};
  std::vector<float> apart;
  for (float i = 0; i < 9; ++i) apart.insert(apart.end(), {2 * i, 0, 2 * i + 1, 1});
  const Case c{.op = Generic{"NonMaxSuppression", {}},
               .inputs = {floats({1, 9, 4}, apart), floats({1, 1, 9}, scores), longs({1}, {9})},
               .outputs = {{DType::kInt64, {9, 3}}}};
  const std::vector<int64_t> rows = run_reference(c)[0].values<int64_t>();
  ASSERT_EQ(rows.size(), 27u);
  std::vector<int64_t> order;
  for (size_t i = 2; i < rows.size(); i += 3) order.push_back(rows[i]);
  EXPECT_THAT(order, ElementsAre(1, 5, 8, 4, 0, 2, 3, 7, 6));
}

TEST(Reference, CumSumForwardAndBack) {
  const Tensor x = longs({3}, {1, 2, 3});
  EXPECT_THAT(run_longs(CumSum{0}, {x}, {3}), ElementsAre(1, 3, 6));
  EXPECT_THAT(run_longs(CumSum{0, true}, {x}, {3}), ElementsAre(0, 1, 3));
  EXPECT_THAT(run_longs(CumSum{0, false, true}, {x}, {3}), ElementsAre(6, 5, 3));
  EXPECT_THAT(run_longs(CumSum{0, true, true}, {x}, {3}), ElementsAre(5, 3, 0));
}

TEST(Reference, ComputesIn16BitTypesByWayOfFloat) {
  const Tensor x({2}, std::vector<Half>{to_half(1.5f), to_half(-2.f)});
  const Case c{.op = Unary{UnaryFn::kRelu}, .inputs = {x}, .outputs = {{DType::kFloat16, {2}}}};
  const Tensor y = run_reference(c)[0];
  EXPECT_EQ(y.at(0), 1.5);
  EXPECT_EQ(y.at(1), 0);
}

/// Data movers must not care what they move.
class ReferenceDtypes : public testing::TestWithParam<DType> {};

TEST_P(ReferenceDtypes, MovesElementsUnchanged) {
  const Tensor x = random_integers(GetParam(), {3, 4}, 1);
  const Case transposed{.op = StridedCopy{0, {1, 4}}, .inputs = {x}, .outputs = {{GetParam(), {4, 3}}}};
  const Tensor y = run_reference(transposed)[0];
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(y.at(i), x.at(i % 3 * 4 + i / 3));
  const Case cast{.op = Cast{}, .inputs = {x}, .outputs = {{DType::kFloat64, {3, 4}}}};
  const Tensor doubles = run_reference(cast)[0];
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(doubles.at(i), x.at(i));
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceDtypes,
                         testing::Values(DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8,
                                         DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                         DType::kFloat64),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

TEST(Reference, RefusesWithAReason) {
  const Case strings{.op = Unary{UnaryFn::kExp}, .inputs = {Tensor(DType::kInt32, {2})}, .outputs = {{DType::kInt32, {2}}}};
  EXPECT_EQ(reference_fault(strings), "no kernel for i32");
  const Case grouped{.op = Conv{.strides = {1}, .dilations = {1}, .pads = {0, 0}, .group = 0},
                     .inputs = {floats({1, 2, 2}, {1, 2, 3, 4}), floats({2, 1, 1}, {1, 1})},
                     .outputs = {{DType::kFloat32, {1, 2, 2}}}};
  EXPECT_EQ(reference_fault(grouped), "weight [2,1,1] in 0 groups does not fit input [1,2,2]");
  const Case standing{.op = Pool{.kernel = {1}, .strides = {0}, .dilations = {1}, .pads = {0, 0}},
                      .inputs = {floats({1, 1, 2}, {1, 2})},
                      .outputs = {{DType::kFloat32, {1, 1, 2}}}};
  EXPECT_THAT(reference_fault(standing), HasSubstr("strides"));
  const Case operands{.op = Select{}, .inputs = {Tensor(DType::kBool, {2})}, .outputs = {{DType::kFloat32, {2}}}};
  EXPECT_EQ(reference_fault(operands), "expects 3 inputs and 1 output, got 1 and 1");
}

}  // namespace
}  // namespace serin::kernels::test
