// int8_test.cc: what becomes bytes where a model of f32 is quantised, before and after.

#include "runtime/graph/int8/int8.h"

#include <cmath>

#include "runtime/graph/passes/passes.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

ValueId value_called(const Graph& graph, std::string_view name) {
  for (size_t i = 0; i < graph.value_capacity(); ++i) {
    if (graph.value(static_cast<ValueId>(i)).name == name) return static_cast<ValueId>(i);
  }
  ADD_FAILURE() << "no value " << name;
  return kNone;
}

Int8Choice choice_of(const Graph& graph, const std::map<ValueId, std::string>& unfit = {}) {
  auto choice = choose_int8(graph, unfit);
  if (!choice) throw std::runtime_error(choice.error().message);
  return std::move(*choice);
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (const ValueId value : values) names.push_back(graph.value(value).name);
  return names;
}

/// Quantised with a range of 0 to 255 for everything: a scale of 1.
Graph quantised(std::string_view text) {
  Graph graph = graph_of(text);
  const Int8Choice choice = choice_of(graph);
  Ranges ranges;
  for (const ValueId value : choice.values) ranges[value] = {0, 255};
  insert_int8(graph, choice, ranges);
  if (auto inferred = infer_shapes(graph); !inferred) throw std::runtime_error(inferred.error().message);
  if (auto verified = verify(graph); !verified) throw std::runtime_error(verified.error().message);
  return graph;
}

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Int8, AConvolutionReadsAndMakesBytes) {
  EXPECT_EQ(print(quantised(R"(
    x: f32[n,4,9,9]
    c = Conv(x, w[8,4,3,3], pads=[1,1,1,1])
    y = Relu(c)
    return y
  )")),
            dedent(R"(
    x: f32[n,4,9,9]
    w.dequantize = DequantizeLinear(w.bytes:i8[8,4,3,3], w.scales[8], axis=0)
    x.quantize = QuantizeLinear(x, x.scale[]{1.0}, x.zero:u8[]{0})
    x.dequantize = DequantizeLinear(x.quantize, x.scale[]{1.0}, x.zero:u8[]{0})
    c = Conv(x.dequantize, w.dequantize, pads=[1,1,1,1])
    y = Relu(c)
    y.quantize = QuantizeLinear(y, y.scale[]{1.0}, y.zero:u8[]{0})
    y.dequantize = DequantizeLinear(y.quantize, y.scale[]{1.0}, y.zero:u8[]{0})
    return y.dequantize as y
  )"));
}

TEST(Int8, AProductFindsTheRangesOfItsRowsWhenItRuns) {
  EXPECT_EQ(print(quantised(R"(
    x: f32[n,seq,4]
    rows: f32[n,6]
    p = MatMul(x, w[4,6])
    h = Add(b[6], p)
    y = Gemm(rows, v[5,6], c[5], transB=1)
    return h, y
  )")),
            dedent(R"(
    x: f32[n,seq,4]
    rows: f32[n,6]
    h = DynamicQuantizeMatMul(x, w':i8[4,6], p+h.scales[6], _, b[6], by_row=1)
    y = DynamicQuantizeMatMul(rows, v':i8[6,5], y.scales[5], _, c[5], by_row=1)
    return h, y
  )"));
}

TEST(Int8, WeightsAreSymmetricWithAScaleForEachOutputChannel) {
  const Graph graph = quantised("x: f32[n,2,3,3]\ny = Conv(x, w[2,2,1,1]{1,-2,0.5,0.25})\nreturn y");
  const auto bytes = graph.constant(value_called(graph, "w.bytes"))->span<int8_t>();
  const auto scales = graph.constant(value_called(graph, "w.scales"))->span<float>();
  EXPECT_THAT(std::vector(scales.begin(), scales.end()), ElementsAre(2.f / 127, 0.5f / 127));
  EXPECT_THAT(std::vector<int>(bytes.begin(), bytes.end()), ElementsAre(64, -127, 127, 64));
}

TEST(Int8, AScaleIsLargeEnoughForItsBias) {
  Graph graph = quantised("x: f32[n,1,3,3]\ny = Conv(x, w[1,1,1,1]{0.000001}, b[1]{1000})\nreturn y");
  const double unit = graph.constant(value_called(graph, "w.scales"))->span<float>()[0];
  EXPECT_LE(1000 / unit, 0x1p29 * 1.001);
  const auto changed = QuantiseProducts().run(graph);
  ASSERT_TRUE(changed);
  EXPECT_EQ(graph.nodes(Op::kQLinearConv).size(), 1U) << "a bias that does not fit keeps the convolution in f32";
}

TEST(Int8, BytesSpreadBetweenConvolutionsAndNoFurther) {
  const Graph graph = graph_of(R"(
    x: f32[n,4,8,8]
    a = Conv(x, w[4,4,1,1])
    r = HardSwish(a)
    m = MaxPool(r, kernel_shape=[2,2], strides=[2,2])
    b = Conv(m, v[4,4,1,1])
    s = Add(b, m)
    t = Relu(s)
    c = Conv(t, u[4,4,1,1])
    y = Sigmoid(c)
    return y
  )");
  EXPECT_THAT(names_of(graph, choice_of(graph).values), ElementsAre("x", "a", "r", "m", "b", "t", "c")) << "y would only be floats again";
}

TEST(Int8, WhatIsMovedKeepsItsScale) {
  Graph graph = graph_of(R"(
    x: f32[n,4,8,8]
    m = MaxPool(x, kernel_shape=[2,2], strides=[2,2])
    c = Conv(m, w[4,4,1,1])
    d = Conv(x, v[4,4,1,1])
    return c, d
  )");
  const Int8Choice choice = choice_of(graph);
  Ranges ranges;
  for (const ValueId value : choice.values) ranges[value] = {0, 255};
  ranges[value_called(graph, "x")] = {-128, 127};
  insert_int8(graph, choice, ranges);
  ASSERT_TRUE(infer_shapes(graph));
  EXPECT_THAT(print(graph), HasSubstr("QuantizeLinear(m, m.scale[]{1.0}, m.zero:u8[]{128})"));
}

TEST(Int8, WhoeverReadsFloatsThatAUnitDidNotMakeKeepsThem) {
  const std::string text = print(quantised("x: f32[n,4,3,3]\ns = Sin(x)\nc = Conv(s, w[4,4,1,1])\nd = Cos(s)\nreturn c, d"));
  EXPECT_THAT(text, HasSubstr("c = Conv(s.dequantize,"));
  EXPECT_THAT(text, HasSubstr("d = Cos(s)"));
}

TEST(Int8, SaysWhatStaysInFloatsAndWhy) {
  const Graph graph = graph_of(R"(
    x: f32[n,6,8,8]
    k: f32[6,6,1,1]
    a = Conv(x, w[6,3,1,1], group=2)
    b = Conv(x, k)
    line: f32[n,6,8]
    c = Conv(line, u[6,6,1])
    rows: f32[n,6]
    d = Gemm(rows, m[6,2], alpha=2.0)
    e = MatMul(rows, batched[1,6,2])
    return a, b, c, d, e
  )");
  const Int8Choice choice = choice_of(graph);
  EXPECT_THAT(choice.units, IsEmpty());
  EXPECT_THAT(choice.dynamic, IsEmpty());
  std::vector<std::string> kept;
  for (const KeptInFloat& node : choice.kept) kept.push_back(node.node + ": " + node.why);
  EXPECT_THAT(kept, ElementsAre("a: it has groups of 3 channels", "b: its weight is not f32 known at load",
                                "c: it does not slide over the two axes of images", "d: it transposes or scales what it multiplies",
                                "e: its weight is not one f32 matrix"));
}

TEST(Int8, AValueWithoutAUsableRangeKeepsItsNeighboursInFloats) {
  const Graph graph = graph_of("x: f32[n,4,3,3]\na = Conv(x, w[4,4,1,1])\nb = Conv(a, v[4,4,1,1])\nreturn b");
  const Int8Choice choice = choice_of(graph, {{value_called(graph, "b"), "'b' is not finite on the samples"}});
  EXPECT_THAT(names_of(graph, choice.values), ElementsAre("x", "a"));
  ASSERT_EQ(choice.kept.size(), 1U);
  EXPECT_EQ(choice.kept[0].node + ": " + choice.kept[0].why, "b: 'b' is not finite on the samples");
}

TEST(Int8, BytesStandForARangeWithZeroInIt) {
  const auto bytes = byte_scale({-1, 3});
  ASSERT_TRUE(bytes);
  EXPECT_FLOAT_EQ(bytes->scale, 4.f / 255);
  EXPECT_EQ(bytes->zero, 64);
  EXPECT_EQ(byte_scale({1, 2})->zero, 0);
  EXPECT_FLOAT_EQ(byte_scale({1, 2})->scale, 2.f / 255);
  EXPECT_EQ(byte_scale({-2, -1})->zero, 255);
  EXPECT_EQ(byte_scale({0, 0})->scale, 1);
  EXPECT_FALSE(byte_scale({0, INFINITY}));
  EXPECT_FALSE(byte_scale({-3e38f, 3e38f})) << "the scale of a product would overflow";
  EXPECT_FALSE(byte_scale({0, 1e-30f})) << "and here underflow";
  EXPECT_FALSE(byte_scale({NAN, 1}));
}

TEST(Int8, KnowsAQuantisedGraph) {
  EXPECT_TRUE(is_quantised(graph_of("x: f32[n,2]\nq, s, z = DynamicQuantizeLinear(x)\nreturn q")));
  EXPECT_FALSE(is_quantised(graph_of("x: f32[n,2]\ny = Relu(x)\nreturn y")));
}

TEST(Int8, KnowsWhetherBytesAreMultiplied) {
  EXPECT_TRUE(multiplies_bytes(graph_of("x: u8[n,2]\nw: i8[2,2]\ny = MatMulInteger(x, w)\nreturn y")));
  EXPECT_FALSE(multiplies_bytes(graph_of("x: f32[n,2]\nq, s, z = DynamicQuantizeLinear(x)\nreturn q")));
  EXPECT_TRUE(multiplies_bytes(graph_of(R"(
    c: bool[]
    y = If(c)
      then:
        a = MatMulInteger(u8[1,2]{1,2}, i8[2,1]{3,4})
        return a
      else:
        return i32[1,1]{0}
    return y
  )")));
}

TEST(Int8, WithoutRangesConvolutionsAreKept) {
  const Graph graph = graph_of("x: f32[n,4,5,5]\na = Conv(x, w[4,4,1,1])\nf = Flatten(a, axis=1)\ny = MatMul(f, v[100,3])\nreturn y");
  const auto choice = choose_int8(graph, {}, /*ranges=*/false);
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_TRUE(choice->units.empty() && choice->values.empty());
  EXPECT_EQ(choice->dynamic.size(), 1U);
  EXPECT_EQ(choice->without_ranges, 1U);
}

}  // namespace
}  // namespace serin::graph
