// The stage that makes one loop of several steps: which it takes, which it leaves, and that the numbers stay.

#include "runtime/engine/layout/pointwise_chains.h"

#include <gmock/gmock.h>

#include "runtime/engine/plan.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::best;
using test::model_of;
using test::random_tensor;
using test::Tensor;
using testing::ElementsAre;

/// The kernels of the plan: "Conv", "Pointwise*3" (a program of three steps) ...
std::vector<std::string> kinds_of(const Plan& plan) {
  std::vector<std::string> kinds;
  for (const Step& step : plan.program.steps) {
    kinds.emplace_back(kernels::kOpNames[step.kernel.index()]);
    if (const auto* program = std::get_if<kernels::Pointwise>(&step.kernel)) kinds.back() += "*" + std::to_string(program->steps.size());
  }
  return kinds;
}

/// Runs the text with the stage, without it, and on reference kernels: all must agree. Answers the kernels with the stage.
std::vector<std::string> fused(std::string_view text, const std::vector<Shape>& inputs) {
  std::vector<Tensor> tensors;
  for (const Shape& shape : inputs) tensors.push_back(random_tensor(shape, static_cast<uint32_t>(tensors.size() + 1)));
  std::vector<std::string> kinds;
  const auto results = [&](const kernels::Backend& backend, LoadOptions options) {
    const auto model = model_of(text, backend, std::move(options));
    auto executor = model->executor({});
    EXPECT_TRUE(executor) << executor.error().message;
    kinds = kinds_of((*executor)->plan());
    return test::run(**executor, tensors);
  };
  const auto plain = results(test::reference(), {.disabled_passes = {std::string(kPointwiseChainsPass)}});
  EXPECT_THAT(kinds, testing::Each(testing::Not(testing::StartsWith("Pointwise"))));
  const auto by_reference = results(test::reference(), {});
  const auto by_vectors = results(best(), {});
  for (size_t i = 0; i < plain.size(); ++i) {
    test::expect_near(by_reference[i].view(), plain[i].view(), "fused, reference kernels");
    test::expect_near(by_vectors[i].view(), plain[i].view(), "fused, vector kernels");
  }
  return kinds;
}

TEST(PointwiseChains, AChainIsOneStep) {
  EXPECT_THAT(fused("x: f32[300,500]\na = Mul(x, s[500])\nb = Add(a, t[300,1])\nc = Sigmoid(b)\ny = Sub(c, 0.5)\nreturn y", {{300, 500}}),
              ElementsAre("Pointwise*4"));
}

TEST(PointwiseChains, ATreeWithAValueReadTwiceIsOneStep) {
  EXPECT_THAT(fused(R"(
    x: f32[800,90]
    z: f32[800,90]
    a = Exp(x)
    b = Neg(z)
    c = Mul(a, b)
    d = Add(c, a)
    y = Max(d, c)
    return y
  )",
                    {{800, 90}, {800, 90}}),
              ElementsAre("Pointwise*5"));
}

TEST(PointwiseChains, ConditionsAreComputedInside) {
  EXPECT_THAT(fused("x: f32[1000,70]\nc = Less(x, 0.25)\na = Mul(x, x)\ny = Where(c, a, x)\nreturn y", {{1000, 70}}),
              ElementsAre("Pointwise*3"));
}

TEST(PointwiseChains, OperatorsOfSeveralKernelsAreTakenApart) {
  EXPECT_THAT(fused("x: f32[70000]\na = Pow(x, 3.0)\ny = Swish(a, alpha=2.0)\nreturn y", {{70000}}), ElementsAre("Pointwise*5"));
}

TEST(PointwiseChains, WhatOthersReadIsComputedByItself) {
  EXPECT_THAT(fused("x: f32[70000]\na = Exp(x)\ny = Neg(a)\nreturn a, y", {{70000}}), ElementsAre("Unary", "Unary")) << "an output";
  EXPECT_THAT(fused("x: f32[300,300]\na = Exp(x)\nb = Neg(a)\nc = Abs(b)\nm = MatMul(a, c)\nreturn m", {{300, 300}}),
              ElementsAre("Unary", "Pointwise*2", "MatMul"));
  EXPECT_THAT(fused("x: f32[300,300]\na = Exp(x)\nr = Reshape(a, i64{90000})\nb = Neg(a)\ns = Abs(r)\nreturn b, s", {{300, 300}}),
              ElementsAre("Unary", "Unary", "Unary"))
      << "a view shows it";
}

TEST(PointwiseChains, WorkOnASmallerShapeIsNotRepeated) {
  EXPECT_THAT(fused("x: f32[700,100]\ng: f32[700,1]\na = Sigmoid(g)\nb = Mul(x, a)\ny = Relu(b)\nreturn y", {{700, 100}, {700, 1}}),
              ElementsAre("Unary", "Pointwise*2"));
}

TEST(PointwiseChains, SmallTensorsStay) {
  EXPECT_THAT(fused("x: f32[40]\na = Exp(x)\ny = Neg(a)\nreturn y", {{40}}), ElementsAre("Unary", "Unary"));
}

TEST(PointwiseChains, OtherTypesStay) {
  EXPECT_THAT(fused("x: f32[70000]\ni = Cast(x, to=i64)\na = Add(i, i)\nb = Mul(a, a)\ny = Cast(b, to=f32)\nreturn y", {{70000}}),
              ElementsAre("Cast", "Binary", "Binary", "Cast"));
}

TEST(PointwiseChains, InputsAreLimited) {
  std::string text = "x: f32[70000]\nt0 = Add(x, c[70000])\n";
  for (int i = 1; i < 12; ++i) {
    const std::string n = std::to_string(i);
    text += "t" + n + " = Mul(t" + std::to_string(i - 1) + ", c" + n + "[70000])\n";
  }
  EXPECT_THAT(fused(text + "return t11", {{70000}}), ElementsAre("Pointwise*5", "Pointwise*7"));
}

TEST(PointwiseChains, ChannelBlocksStayInside) {
  if (best().channel_block() == 0) GTEST_SKIP() << "this backend wants plain tensors";
  EXPECT_THAT(fused(R"(
    x: f32[1,32,50,50]
    a = Conv(x, w[32,32,1,1])
    s = Mul(a, f[1,32,1,1])
    t = Add(s, g[32,1,1])
    u = Tanh(t)
    y = Conv(u, v[32,32,1,1])
    return y
  )",
                    {{1, 32, 50, 50}}),
              ElementsAre("ChannelBlocks", "Conv", "Pointwise*3", "Conv", "ChannelBlocks"));
}

}  // namespace
}  // namespace serin::engine
