// What the plan makes of a graph: which nodes are steps, who shares memory with whom, what is refused.

#include "runtime/engine/plan.h"

#include <gmock/gmock.h>

#include "runtime/engine/describe.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::model_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Executor> executor_of(std::string_view text, const graph::Bindings& bindings = {}) {
  const auto model = model_of(text);
  if (!model) return nullptr;
  auto executor = model->executor(bindings);
  EXPECT_TRUE(executor) << executor.error().message;
  return executor ? std::move(*executor) : nullptr;
}

std::vector<std::string> kernels_of(const Plan& plan) {
  std::vector<std::string> result;
  result.reserve(plan.program.steps.size());
  for (const Step& step : plan.program.steps) result.emplace_back(kernels::kOpNames[step.kernel.index()]);
  return result;
}

TEST(Plan, ReshapesAreViewsAndCostNothing) {
  const auto executor = executor_of(R"(
    x: f32[2,3,4]
    a = Neg(x)
    b = Reshape(a, shape:i64[2]{6,4})
    c = Unsqueeze(b, axes=[0])
    d = Flatten(c, axis=2)
    e = Abs(d)
    return e
  )");
  ASSERT_TRUE(executor);
  EXPECT_THAT(kernels_of(executor->plan()), ElementsAre("Unary", "Unary"));
  EXPECT_EQ(executor->outputs()[0].shape, (Shape{6, 4}));
}

TEST(Plan, SlicesOfNeighboursAreViews) {
  const auto executor = executor_of(R"(
    x: f32[4,6]
    n = Neg(x)
    top, bottom = Split(n, axis=0)
    left = Slice(bottom, axes=[1], starts=[0], ends=[3])
    a = Abs(top)
    b = Abs(left)
    return a, b
  )");
  ASSERT_TRUE(executor);
  // The two halves are rows one after the other; the left half of the columns is not.
  EXPECT_THAT(kernels_of(executor->plan()), ElementsAre("Unary", "StridedCopy", "Unary", "Unary"));
}

TEST(Plan, OneRowIsGatheredByAView) {
  const auto executor = executor_of(R"(
    x: f32[4,6]
    n = Neg(x)
    row = Gather(n, i:i64[]{-1}, axis=0)
    y = Abs(row)
    return y
  )");
  ASSERT_TRUE(executor);
  EXPECT_THAT(kernels_of(executor->plan()), ElementsAre("Unary", "Unary"));
}

TEST(Plan, ElementwiseChainsWorkInPlaceInTheCallersMemory) {
  const auto executor = executor_of(R"(
    x: f32[100]
    a = Neg(x)
    b = Exp(a)
    c = Add(b, b)
    return c
  )");
  ASSERT_TRUE(executor);
  EXPECT_EQ(executor->plan().arena_bytes, 0u);
}

TEST(Plan, AnOperandThatIsReadLaterIsNotOverwritten) {
  const auto executor = executor_of(R"(
    x: f32[100]
    a = Neg(x)
    b = Exp(a)
    c = Softmax(b, axis=0)
    d = Add(c, a)
    return d
  )");
  ASSERT_TRUE(executor);
  const std::vector<StepInfo> steps = engine::steps(executor->plan());
  EXPECT_EQ(steps[0].outputs[0].place, steps[1].inputs[0].place);
  EXPECT_NE(steps[0].outputs[0].place + std::to_string(steps[0].outputs[0].offset),
            steps[1].outputs[0].place + std::to_string(steps[1].outputs[0].offset));
}

TEST(Plan, ABroadcastOperandIsNotOverwritten) {
  const auto executor = executor_of(R"(
    x: f32[3]
    y: f32[2,3]
    a = Neg(x)
    b = Add(a, y)
    return b
  )");
  ASSERT_TRUE(executor);
  const std::vector<StepInfo> steps = engine::steps(executor->plan());
  EXPECT_EQ(steps[1].inputs[0].place, "arena");
  EXPECT_EQ(steps[1].outputs[0].place, "output 0");
}

TEST(Plan, OutputsThatBelongToSomebodyElseAreCopied) {
  const auto executor = executor_of(R"(
    x: f32[3]
    k = Identity(w[2])
    a = Neg(x)
    b = Reshape(a, shape:i64[2]{1,3})
    return x as same, k, a, b
  )");
  ASSERT_TRUE(executor);
  const auto outputs = test::run(*executor, {test::Tensor(Shape{3}, std::vector<float>{1, 2, 3})});
  EXPECT_THAT(outputs[0].values<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(outputs[2].values<float>(), ElementsAre(-1, -2, -3));
  EXPECT_THAT(outputs[3].values<float>(), ElementsAre(-1, -2, -3));
}

TEST(Plan, TheArenaIsReusedAlongAChain) {
  const auto executor = executor_of(R"(
    x: f32[16,16]
    a = Softmax(x, axis=1)
    b = Softmax(a, axis=0)
    c = Softmax(b, axis=1)
    d = Softmax(c, axis=0)
    e = Softmax(d, axis=1)
    return e
  )");
  ASSERT_TRUE(executor);
  EXPECT_EQ(executor->plan().arena_bytes, 2 * 16 * 16 * sizeof(float));
  EXPECT_EQ(executor->plan().live_bytes, executor->plan().arena_bytes);
}

TEST(Plan, WhatOnlyConstantsFeedIsComputedAtLoad) {
  const auto executor = executor_of(R"(
    x: f32[n,4]
    s = Shape(x)
    n0 = Gather(s, i:i64[1]{0}, axis=0)
    dims = Concat(n0, k:i64[1]{4}, axis=0)
    zero = ConstantOfShape(dims)
    one = Exp(zero)
    y = Add(x, one)
    return y
  )",
                                    {{"n", 3}});
  ASSERT_TRUE(executor);
  EXPECT_THAT(kernels_of(executor->plan()), ElementsAre("Binary"));
}

TEST(Plan, EveryNodeThatCannotRunIsNamedAtOnce) {
  const std::string message = test::refusal_of(R"(
    x: bool[2,2]
    n: i64[]
    a = MatMul(x, x)
    b = Softmax(x)
    y = Neg(b)
    return y, a
  )");
  EXPECT_THAT(message, HasSubstr("'a' (MatMul): "));
  EXPECT_THAT(message, HasSubstr("'b' (Softmax): "));
  EXPECT_THAT(message, HasSubstr("nodes cannot be run: "));
}

TEST(Plan, AConstantAsLargeAsAnArenaIsRefusedWithItsSize) {
  EXPECT_THAT(test::refusal_of(R"(
    x: f32[1]
    z = ConstantOfShape(k:i64[2]{1048576,8192})
    s = ReduceSum(z)
    y = Add(x, s)
    return y
  )"),
              HasSubstr("'z' (ConstantOfShape): would make a constant of shape [1048576,8192]"));
}

TEST(Plan, DescribesItself) {
  const auto executor = executor_of("x: f32[2,3]\nfc = MatMul(x, w[3,4])\ny = Softmax(fc, axis=1)\nreturn y\n");
  ASSERT_TRUE(executor);
  const std::string text = describe(executor->plan());
  EXPECT_THAT(text, HasSubstr("MatMul   ref      48F    104B  f32[2,4] at arena+0  fc\n"));
  EXPECT_THAT(text, HasSubstr("Softmax  ref      32F     64B  f32[2,4] at output 0  y\n"));
  EXPECT_THAT(text, HasSubstr("in all 80FLOP and 168B moved"));
  EXPECT_THAT(text, HasSubstr("arena 64 bytes"));
}

TEST(Plan, CountsArithmetic) {
  const auto flops = [](const std::string& line, const std::string& inputs = "x: f32[2,8,10,10]\n") {
    const auto executor = executor_of(inputs + line + "\nreturn y\n");
    EXPECT_TRUE(executor) << line;
    return executor ? steps(executor->plan()).back().flops : 0;
  };
  EXPECT_EQ(flops("y = Conv(x, w[4,8,3,3])"), 2 * (4 * 8 * 9) * (2 * 8 * 8));
  EXPECT_EQ(flops("y = Conv(x, w[8,1,3,3], group=8)"), 2 * (8 * 9) * (2 * 8 * 8));
  EXPECT_EQ(flops("y = ConvTranspose(x, w[8,4,2,2], strides=[2,2])"), 2 * (8 * 4 * 4) * (2 * 100));
  EXPECT_EQ(flops("y = MatMul(x, w[10,5])"), 2 * (2 * 8 * 10 * 5) * 10);
  EXPECT_EQ(flops("y = ReduceSum(x, axes=[1])"), 2 * 8 * 100);
  EXPECT_EQ(flops("y = Transpose(x, perm=[0,2,3,1])"), 0);
}

}  // namespace
}  // namespace serin::engine
