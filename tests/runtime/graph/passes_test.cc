// Passes, before and after, as a person would draw them. That the numbers stay the same is tested with the kernels (tests/runtime/engine); here they are
// compared with hand-computed ones where a pass computes.

#include "runtime/graph/passes/passes.h"

#include <cmath>

#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

std::vector<float> floats(const Graph& graph, std::string_view name) {
  for (size_t i = 0; i < graph.value_capacity(); ++i) {
    const Value& value = graph.value(static_cast<ValueId>(i));
    if (value.name != name || !value.constant) continue;
    const auto span = value.constant->span<float>();
    return {span.begin(), span.end()};
  }
  return {};
}

// ---- cleaning ----

TEST(RemoveIdentity, RemovesWhatDoesNothing) {
  EXPECT_EQ(after(RemoveIdentity(), R"(
    x: f32[n,4]
    a = Identity(x)
    b = Cast(a, to=f32)
    c = Reshape(b, i64{0,-1})
    d = Transpose(c, perm=[0,1])
    e = Slice(d, starts=[0], ends=[9223372036854775807], axes=[1], steps=[1])
    f = Pad(e, pads=[0,0,0,0])
    y = Relu(f)
    return y
  )"),
            dedent(R"(
    x: f32[n,4]
    y = Relu(x)
    return y
  )"));
}

TEST(RemoveIdentity, LeavesWhatMovesOrConverts) {
  EXPECT_TRUE(leaves(RemoveIdentity(), R"(
    x: f32[4,4]
    a = Transpose(x, perm=[1,0])
    b = Cast(a, to=f64)
    c = Slice(b, starts=[-1], ends=[-9223372036854775807], axes=[1], steps=[-1])
    y = Pad(c, pads=[0,1,0,-1])
    return y
  )"));
}

TEST(RemoveIdentity, KeepsTheNameOfAnOutput) {
  EXPECT_EQ(after(RemoveIdentity(), "x: f32[n]\na = Relu(x)\ny = Identity(a)\nreturn y"), "x: f32[n]\na = Relu(x)\nreturn a as y\n");
}

TEST(DeadCode, RemovesWhatNobodyReads) {
  EXPECT_EQ(after(DeadCode(), R"(
    x: f32[n]
    a = Relu(x)
    b = Neg(a)
    y = Abs(x)
    return y
  )"),
            "x: f32[n]\ny = Abs(x)\nreturn y\n");
  EXPECT_TRUE(leaves(DeadCode(), "x: f32[n,4]\na, b = Split(x, axis=1)\nreturn b")) << "one result is read";
}

TEST(CommonSubexpressions, NodesThatComputeTheSameAreOne) {
  EXPECT_EQ(after(CommonSubexpressions(), R"(
    x: f32[n,4]
    a = Sub(x, 1.0)
    b = Sub(x, 1.0)
    c = Mul(a, w[4])
    d = Mul(b, w[4])
    y = Add(c, d)
    return y
  )"),
            dedent(R"(
    x: f32[n,4]
    a = Sub(x, 1.0)
    c = Mul(a, w[4])
    y = Add(c, c)
    return y
  )"));
}

TEST(CommonSubexpressions, OutputsKeepTheirNames) {
  EXPECT_EQ(after(CommonSubexpressions(), "x: f32[n]\na = Exp(x)\nb = Exp(x)\nreturn a, b"), "x: f32[n]\na = Exp(x)\nreturn a, a as b\n");
}

TEST(CommonSubexpressions, AllResultsOfANodeGoTogether) {
  EXPECT_EQ(after(CommonSubexpressions(), R"(
    x: f32[6]
    a, b = Split(x, axis=0)
    c, d = Split(x, axis=0)
    y = Sub(a, d)
    return y
  )"),
            dedent(R"(
    x: f32[6]
    a, b = Split(x, axis=0)
    y = Sub(a, b)
    return y
  )"));
}

TEST(CommonSubexpressions, WhatDiffersStays) {
  EXPECT_TRUE(leaves(CommonSubexpressions(), "x: f32[4]\na = Sub(x, 1.0)\nb = Sub(x, 2.0)\ny = Add(a, b)\nreturn y")) << "a constant";
  EXPECT_TRUE(leaves(CommonSubexpressions(), "x: f32[4]\na = Sub(x, v[4])\nb = Sub(v[4], x)\ny = Add(a, b)\nreturn y")) << "the order";
  EXPECT_TRUE(leaves(CommonSubexpressions(), "x: f32[4]\na = Elu(x, alpha=1.0)\nb = Elu(x, alpha=2.0)\ny = Add(a, b)\nreturn y"))
      << "an attribute";
  EXPECT_TRUE(leaves(CommonSubexpressions(), "x: f32[4]\na = RandomNormalLike(x)\nb = RandomNormalLike(x)\ny = Add(a, b)\nreturn y"))
      << "each draws for itself";
}

TEST(FoldShapes, FoldsIntegersThatAreKnown) {
  EXPECT_EQ(after(FoldShapes(), R"(
    x: f32[n,seq,64]
    s = Shape(x)
    w = Slice(s, starts=[2], ends=[3], axes=[0], steps=[1])
    head = Div(w, i64{4})
    target = Concat(i64{0,0,4}, head, axis=0)
    y = Reshape(x, target)
    return y
  )"),
            dedent(R"(
    x: f32[n,seq,64]
    y = Reshape(x, target:i64[4]{0,0,4,16})
    return y
  )"));
}

TEST(FoldShapes, LeavesWhatHasASymbol) {
  EXPECT_TRUE(leaves(FoldShapes(), "x: f32[n,4]\ns = Shape(x)\ny = Gather(s, i64[]{0})\nreturn y"));
}

TEST(ConstantOperands, MakesKnownOperandsAttributes) {
  EXPECT_EQ(after(ConstantOperands(), R"(
    x: f32[n,8]
    a = Slice(x, i64{1}, i64{5}, i64{1})
    b = Clip(a, _, f32[]{6.0})
    c = Pad(b, i64{0,1,0,1}, f32[]{0.5})
    y = ReduceSum(c, i64{1})
    return y
  )"),
            dedent(R"(
    x: f32[n,8]
    a = Slice(x, axes=[1], ends=[5], starts=[1])
    b = Clip(a, max=6.0)
    c = Pad(b, pads=[0,1,0,1], value=0.5)
    y = ReduceSum(c, axes=[1])
    return y
  )"));
}

TEST(ConstantOperands, LeavesWhatIsComputed) {
  EXPECT_TRUE(leaves(ConstantOperands(), "x: f32[n,8]\nlow: f32[]\ny = Clip(x, low)\nreturn y"));
}

TEST(InlineIf, TakesTheBranchThatIsKnown) {
  EXPECT_EQ(after(InlineIf(), R"(
    x: f32[n,1]
    y = If(bool[]{0}, x)
      then:
        a: f32[n,1]
        s = Squeeze(a, axes=[1])
        return s
      else:
        a: f32[n,1]
        b = Add(a, k[2])
        c = Relu(b)
        return c
    z = Neg(y)
    return z
  )"),
            dedent(R"(
    x: f32[n,1]
    b = Add(x, k[2])
    c = Relu(b)
    z = Neg(c)
    return z
  )"));
}

// ---- constants ----

Result<std::vector<ConstantPtr>> negate(const Graph& graph, NodeId id) {
  if (!graph.is(id, Op::kNeg)) return Error{Code::kUnsupported, "only Neg"};
  std::vector<float> result;
  for (const float x : graph.constant(graph.input(id, 0))->span<float>()) result.push_back(-x);
  return std::vector<ConstantPtr>{make_constant(DType::kFloat32, graph.constant(graph.input(id, 0))->shape, result.data())};
}

TEST(ConstantFolding, FoldsChainsThatTheKernelsCanCompute) {
  EXPECT_EQ(after(ConstantFolding(negate), R"(
    x: f32[n]
    a = Neg(f32[1]{2.5})
    b = Neg(a)
    c = Abs(b)
    y = Add(x, c)
    return y
  )"),
            dedent(R"(
    x: f32[n]
    c = Abs(b[1]{2.5})
    y = Add(x, c)
    return y
  )"));
}

TEST(ConstantFolding, ATypeIsKnownBeforeTheTensorIs) {
  EXPECT_EQ(after(ConstantFolding(negate), "x: f32[n]\nz: i64[n]\nlike = CastLike(z, x)\ny = Add(x, like)\nreturn y"),
            dedent("x: f32[n]\nz: i64[n]\nlike = Cast(z, to=f32)\ny = Add(x, like)\nreturn y\n"));
}

TEST(ConstantFolding, DoesNotBlowTheModelUp) {
  bool asked = false;
  const ConstantFolding fold([&](const Graph&, NodeId) -> Result<std::vector<ConstantPtr>> {
    asked = true;
    return Error{Code::kUnsupported, ""};
  });
  EXPECT_TRUE(leaves(fold, "x: f32[n,1]\nbig = Expand(w[1,1], i64{2048,1024})\ny = Add(x, big)\nreturn y"));
  EXPECT_FALSE(asked) << "8 MiB instead of 4 bytes";
}

// ---- fusions ----

TEST(FuseConvBatchNorm, FoldsConstantParameters) {
  Graph graph = graph_of(R"(
    x: f32[n,1,8,8]
    c = Conv(x, w[2,1,1,1], b[2], pads=[1,1,1,1])
    y = BatchNormalization(c, gamma[2], beta[2], mean[2], var[2], epsilon=0.001)
    return y
  )");
  const auto w = floats(graph, "w"), b = floats(graph, "b"), gamma = floats(graph, "gamma"), beta = floats(graph, "beta"),
             mean = floats(graph, "mean"), var = floats(graph, "var");
  EXPECT_TRUE(FuseConvBatchNorm().run(graph).value());
  EXPECT_EQ(print(graph, {.names = true}), dedent(R"(
    x: f32[n,1,8,8]
    y = Conv(x, w'[2,1,1,1], b'[2], pads=[1,1,1,1])  # c+y
    return y
  )"));
  for (size_t c = 0; c < 2; ++c) {
    const double scale = gamma[c] / std::sqrt(var[c] + 0.001);
    EXPECT_FLOAT_EQ(floats(graph, "w'")[c], static_cast<float>(w[c] * scale));
    EXPECT_FLOAT_EQ(floats(graph, "b'")[c], static_cast<float>((b[c] - mean[c]) * scale + beta[c]));
  }
}

TEST(FuseConvBatchNorm, MakesABiasWhereThereIsNone) {
  EXPECT_EQ(after(FuseConvBatchNorm(), R"(
    x: f32[n,3,8,8]
    c = Conv(x, w[4,3,3,3])
    y = BatchNormalization(c, gamma[4], beta[4], mean[4], var[4])
    return y
  )"),
            dedent(R"(
    x: f32[n,3,8,8]
    y = Conv(x, w'[4,3,3,3], c+y.bias[4])
    return y
  )"));
}

TEST(FuseConvBatchNorm, LeavesAConvThatIsReadTwice) {
  EXPECT_TRUE(leaves(FuseConvBatchNorm(), R"(
    x: f32[n,3,8,8]
    c = Conv(x, w[4,3,3,3])
    y = BatchNormalization(c, gamma[4], beta[4], mean[4], var[4])
    return y, c
  )"));
}

TEST(FuseConvBatchNorm, LeavesParametersComputedAtRunTime) {
  EXPECT_TRUE(leaves(FuseConvBatchNorm(), R"(
    x: f32[n,3,8,8]
    gamma: f32[4]
    c = Conv(x, w[4,3,3,3])
    y = BatchNormalization(c, gamma, beta[4], mean[4], var[4])
    return y
  )"));
}

TEST(FuseConvBias, TakesOneNumberForEachChannel) {
  const std::string fused = dedent(R"(
    x: f32[n,3,6,6]
    y = Conv(x, w[4,3,3,3], b'[4])
    return y
  )");
  const std::string start = "x: f32[n,3,6,6]\nc = Conv(x, w[4,3,3,3])\n";
  EXPECT_EQ(after(FuseConvBias(), start + "y = Add(c, b[1,4,1,1])\nreturn y"), fused);
  EXPECT_EQ(after(FuseConvBias(), start + "y = Add(b[4,1,1], c)\nreturn y"), fused);
  EXPECT_TRUE(leaves(FuseConvBias(), start + "y = Add(c, b[4,1])\nreturn y"));
  EXPECT_TRUE(leaves(FuseConvBias(), start + "y = Add(c, b[1,1,1,4])\nreturn y"));
  EXPECT_TRUE(leaves(FuseConvBias(), start + "y = Add(c, b[1,4,1,1])\nreturn y, c"));
  EXPECT_TRUE(leaves(FuseConvBias(), "x: f32[n,3,6,6]\nc = Conv(x, w[4,3,3,3], a[4])\ny = Add(c, b[1,4,1,1])\nreturn y"));
  EXPECT_EQ(after(FuseConvBias(), "x: f32[n,4,8,8]\nc = ConvTranspose(x, w[4,3,3,3], group=2)\ny = Add(c, b[6,1,1])\nreturn y"),
            "x: f32[n,4,8,8]\ny = ConvTranspose(x, w[4,3,3,3], b'[6], group=2)\nreturn y\n");
}

TEST(FuseGelu, RecognisesEverySpelling) {
  const std::string fused = "x: f32[n,8]\ny = Gelu(x)\nreturn y\n";
  const std::string start = "x: f32[n,8]\nd = Div(x, 1.4142135)\ne = Erf(d)\np = Add(e, 1.0)\n";
  EXPECT_EQ(after(FuseGelu(), start + "m = Mul(x, p)\ny = Mul(m, 0.5)\nreturn y"), fused);
  EXPECT_EQ(after(FuseGelu(), start + "m = Mul(0.5, p)\ny = Mul(x, m)\nreturn y"), fused);
  EXPECT_EQ(after(FuseGelu(), start + "h = Mul(x, 0.5)\ny = Mul(h, p)\nreturn y"), fused);
  EXPECT_EQ(after(FuseGelu(), "x: f32[n,8]\nd = Mul(x, 0.70710677)\ne = Erf(d)\np = Add(1.0, e)\nm = Mul(x, p)\ny = Mul(m, 0.5)\nreturn y"),
            fused);
}

TEST(FuseGelu, LeavesWhatOnlyLooksLikeIt) {
  const std::string start = "x: f32[n,8]\nd = Div(x, 1.4142135)\ne = Erf(d)\n";
  EXPECT_TRUE(leaves(FuseGelu(), start + "p = Add(e, 1.0)\nm = Mul(x, p)\ny = Mul(m, 0.6)\nreturn y"));
  EXPECT_TRUE(leaves(FuseGelu(), start + "p = Add(e, 2.0)\nm = Mul(x, p)\ny = Mul(m, 0.5)\nreturn y"));
  EXPECT_TRUE(leaves(FuseGelu(), start + "p = Add(e, 1.0)\nm = Mul(x, p)\ny = Mul(m, 0.5)\nreturn y, m"));
  EXPECT_TRUE(leaves(FuseGelu(), start + "p = Add(e, 1.0)\nm = Mul(p, p)\ny = Mul(m, 0.5)\nreturn y"));
}

TEST(FuseGate, MakesSwishAndHardSwish) {
  EXPECT_EQ(after(FuseGate(), "x: f32[n]\ns = Sigmoid(x)\ny = Mul(x, s)\nreturn y"), "x: f32[n]\ny = Swish(x)\nreturn y\n");
  EXPECT_EQ(after(FuseGate(), "x: f32[n]\ns = HardSigmoid(x, alpha=0.16666667, beta=0.5)\ny = Mul(s, x)\nreturn y"),
            "x: f32[n]\ny = HardSwish(x)\nreturn y\n");
  EXPECT_TRUE(leaves(FuseGate(), "x: f32[n]\nz: f32[n]\ns = Sigmoid(x)\ny = Mul(z, s)\nreturn y")) << "a gate for something else";
  EXPECT_TRUE(leaves(FuseGate(), "x: f32[n]\ns = HardSigmoid(x)\ny = Mul(x, s)\nreturn y")) << "alpha is 0.2";
}

constexpr std::string_view kLayerNorm = R"(
    x: f32[n,s,8]
    m = ReduceMean(x, axes=[-1])
    d = Sub(x, m)
    q = Pow(d, 2.0)
    v = ReduceMean(q, axes=[-1])
    e = Add(v, 1e-06)
    r = Sqrt(e)
    z = Div(d, r)
    g = Mul(z, gamma[8])
    y = Add(g, beta[8])
    return y
  )";

TEST(FuseLayerNorm, RecognisesTheDecomposition) {
  EXPECT_EQ(after(FuseLayerNorm(), kLayerNorm), dedent(R"(
    x: f32[n,s,8]
    y = LayerNormalization(x, gamma[8], beta[8], axis=-1, epsilon=1e-06)
    return y
  )"));
}

/// As TensorFlow and Keras multiply it out.
TEST(FuseLayerNorm, RecognisesTheSumOfProducts) {
  constexpr std::string_view kHead = R"(
    x: f32[n,s,8]
    m = ReduceMean(x, axes=[-1])
    d = Sub(x, m)
    q = Mul(d, d)
    v = ReduceMean(q, axes=[-1])
    e = Add(v, 0.001)
    r = Sqrt(e)
    i = Reciprocal(r)
    f = Mul(i, gamma[1,1,8])
    p = Mul(x, f)
)";
  const std::string expected = dedent(R"(
    x: f32[n,s,8]
    y = LayerNormalization(x, gamma'[8], beta'[8], axis=-1, epsilon=0.001)
    return y
  )");
  const std::string head(kHead);
  EXPECT_EQ(
      after(FuseLayerNorm(), head + "    c = Neg(m)\n    t = Mul(c, f)\n    b = Add(t, beta[1,1,8])\n    y = Add(p, b)\n    return y\n"),
      expected);
  EXPECT_EQ(after(FuseLayerNorm(), head + "    t = Mul(m, f)\n    b = Sub(beta[8], t)\n    y = Add(b, p)\n    return y\n"), expected);
  EXPECT_TRUE(leaves(FuseLayerNorm(), head + "    t = Mul(m, f)\n    b = Add(beta[8], t)\n    y = Add(b, p)\n    return y\n"))
      << "the mean is added";
}

TEST(FuseLayerNorm, LeavesOtherAxesAndScalesOfOtherShape) {
  std::string text(kLayerNorm);
  EXPECT_TRUE(leaves(FuseLayerNorm(), std::string(text).replace(text.find("axes=[-1]"), 9, "axes=[-2]")));
  EXPECT_TRUE(leaves(FuseLayerNorm(), std::string(text).replace(text.find("gamma[8]"), 8, "gamma[1]")));
}

TEST(LowerGemm, FoldsItsScales) {
  Graph graph = graph_of("x: f32[n,2]\ny = Gemm(x, w[3,2], b[3], alpha=0.5, beta=2.0, transB=1)\nreturn y");
  const auto w = floats(graph, "w"), b = floats(graph, "b");
  EXPECT_TRUE(LowerGemm().run(graph).value());
  EXPECT_EQ(print(graph), "x: f32[n,2]\ny = FusedMatMul(x, w'[3,2], b'[3], transB=1)\nreturn y\n");
  EXPECT_EQ(floats(graph, "w'")[4], w[4] * 0.5F);
  EXPECT_EQ(floats(graph, "b'")[2], b[2] * 2.0F);
  EXPECT_TRUE(leaves(LowerGemm(), "x: f32[n,2]\nw: f32[2,3]\ny = Gemm(x, w, alpha=0.5)\nreturn y"));
}

TEST(FuseMatMulAdd, TakesARowAsBias) {
  EXPECT_EQ(after(FuseMatMulAdd(), "x: f32[n,s,8]\nm = MatMul(x, w[8,4])\ny = Add(b[4], m)\nreturn y"),
            "x: f32[n,s,8]\ny = FusedMatMul(x, w[8,4], b[4])\nreturn y\n");
  EXPECT_TRUE(leaves(FuseMatMulAdd(), "x: f32[1,8]\nm = MatMul(x, w[8,4])\ny = Add(m, b[3,4])\nreturn y"))
      << "the sum is larger than the product";
  EXPECT_TRUE(leaves(FuseMatMulAdd(), "x: f32[n,8]\nm = MatMul(x, w[8,4])\ny = Add(m, b[4])\nreturn y, m"))
      << "the product is read elsewhere";
}

TEST(FuseResidualAdd, ClosesAResidualBlock) {
  EXPECT_EQ(after(FuseResidualAdd(), R"(
    x: f32[n,4,8,8]
    c = Conv(x, w[4,4,3,3], b[4], pads=[1,1,1,1])
    s = Add(c, x)
    y = Relu(s)
    return y
  )"),
            dedent(R"(
    x: f32[n,4,8,8]
    s = FusedConv(x, w[4,4,3,3], b[4], x, pads=[1,1,1,1])
    y = Relu(s)
    return y
  )"));
  EXPECT_TRUE(leaves(FuseResidualAdd(), "x: f32[n,4,8,8]\nz: f32[n,4,1,1]\nc = Conv(x, w[4,4,1,1])\ny = Add(c, z)\nreturn y"))
      << "it would have to broadcast";
}

TEST(FuseActivation, MovesIntoWhatIsBeforeIt) {
  const auto conv = [](std::string_view activation) {
    return after(FuseActivation(), "x: f32[n,3,8,8]\nc = Conv(x, w[4,3,1,1])\ny = " + std::string(activation) + "\nreturn y");
  };
  const auto fused = [](std::string_view attributes) {
    return "x: f32[n,3,8,8]\ny = FusedConv(x, w[4,3,1,1], " + std::string(attributes) + ")\nreturn y\n";
  };
  EXPECT_EQ(conv("Relu(c)"), fused("activation=Relu"));
  EXPECT_EQ(conv("Clip(c, min=0.0, max=6.0)"), fused("activation=Clip, alpha=0.0, beta=6.0"));
  EXPECT_EQ(conv("LeakyRelu(c, alpha=0.1)"), fused("activation=LeakyRelu, alpha=0.1"));
  EXPECT_EQ(conv("Swish(c)"), fused("activation=Swish"));
  EXPECT_EQ(conv("Gelu(c, approximate=tanh)"), fused("activation=GeluTanh"));
  EXPECT_EQ(after(FuseActivation(), "x: f32[n,3]\nm = MatMul(x, w[3,4])\na = Relu(m)\ny = Tanh(a)\nreturn y"),
            "x: f32[n,3]\na = FusedMatMul(x, w[3,4], activation=Relu)\ny = Tanh(a)\nreturn y\n");
}

TEST(FuseActivation, LeavesWhatCannotBeSaid) {
  EXPECT_TRUE(leaves(FuseActivation(), "x: f32[n,3]\nlow: f32[]\nm = MatMul(x, w[3,4])\ny = Clip(m, low)\nreturn y"));
  EXPECT_TRUE(leaves(FuseActivation(), "x: f32[n,3]\nm = MatMul(x, w[3,4])\ny = Swish(m, alpha=2.0)\nreturn y"));
  EXPECT_TRUE(leaves(FuseActivation(), "x: f32[n,3]\nm = MatMul(x, w[3,4])\ny = Relu(m)\nreturn y, m"));
}

// ---- the runner and bind ----

constexpr std::string_view kNet = R"(
    x: f32[n,3,8,8]
    c = Conv(x, w[4,3,3,3], pads=[1,1,1,1])
    b = BatchNormalization(c, gamma[4], beta[4], mean[4], var[4])
    r = Relu(b)
    s = Shape(r)
    k = Gather(s, i64[]{0})
    u = Unsqueeze(k, i64{0})
    t = Concat(u, i64{-1}, axis=0)
    f = Reshape(r, t)
    y = Gemm(f, v[256,10], bias[10])
    return y
  )";

TEST(RunPasses, LeavesAConvNetOfTwoLayers) {
  Graph graph = graph_of(kNet);
  std::vector<std::string> seen;
  const auto timings = run_passes(graph, {.after_pass = [&](const std::string& pass, const Graph&) { seen.push_back(pass); }});
  ASSERT_TRUE(timings) << timings.error().message;
  EXPECT_THAT(seen, ::testing::ElementsAre("constant_operands", "fuse_conv_batchnorm", "lower_gemm", "fuse_activation"));
  EXPECT_EQ(timings->size(), all_passes({}).size());

  const auto bound = bind(graph, {{"n", 2}});
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_EQ(print(*bound, {.types = true}), dedent(R"(
    x: f32[2,3,8,8]
    r = FusedConv(x, w'[4,3,3,3], c+b.bias[4], activation=Relu, pads=[1,1,1,1])  # f32[2,4,8,8]
    f = Reshape(r, t:i64[2]{2,-1})  # f32[2,256]
    y = FusedMatMul(f, v[256,10], bias[10])  # f32[2,10]
    return y
  )"));
}

TEST(RunPasses, CanLeavePassesOut) {
  Graph graph = graph_of(kNet);
  ASSERT_TRUE(run_passes(graph, {.disabled = {"fuse_activation"}}));
  EXPECT_THAT(print(graph), ::testing::HasSubstr("Relu("));
  EXPECT_THAT(run_passes(graph, {.disabled = {"fuse_everything"}}).error().message,
              ::testing::StartsWith("there is no pass 'fuse_everything'; passes are fold_shapes, "));
}

TEST(RunPasses, ASecondRunChangesNothing) {
  Graph graph = graph_of(kNet);
  ASSERT_TRUE(run_passes(graph));
  const std::string once = print(graph);
  ASSERT_TRUE(run_passes(graph));
  EXPECT_EQ(print(graph), once);
}

TEST(Bind, ChecksOnNumbersWhatSymbolsCouldNot) {
  const Graph graph = graph_of("x: f32[n,4]\nz: f32[m,4]\ny = Add(x, z)\nreturn y");
  EXPECT_EQ(bind(graph, {{"n", 2}, {"m", 3}}).error().message, "node 'y' (Add): shapes [2,4] and [3,4] do not broadcast");
  EXPECT_EQ(bind(graph, {{"n", -1}}).error().message, "dimension 'n' is bound to -1, it cannot be negative");
  EXPECT_EQ(bind(graph, {{"n", int64_t{1} << 40}}).error().code, Code::kTooLarge);
}

TEST(Bind, SharesTheConstants) {
  const Graph graph = graph_of("x: f32[n,4]\ny = MatMul(x, w[4,4])\nreturn y");
  const Graph bound = *bind(graph, {{"n", 3}});
  const auto id = [](const Graph& g) { return g.constant(g.input(g.nodes(Op::kMatMul).front(), 1))->id; };
  EXPECT_EQ(id(graph), id(bound));
}

}  // namespace
}  // namespace serin::graph
