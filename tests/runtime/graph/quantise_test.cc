// Passes on quantised graphs, before and after.

#include "runtime/graph/passes/passes.h"

#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

/// What the passes make of a graph, one after the other, with what they leave unread removed.
template <class... Passes>
std::string after(std::string_view text, const Passes&... passes) {
  Graph graph = graph_of(text);
  const auto run = [&](const Pass& pass) {
    const Status applied = apply(pass, graph);
    EXPECT_TRUE(applied) << (applied ? "" : applied.error().message);
  };
  (run(passes), ...);
  run(DeadCode());
  return print(graph);
}
template <class... Passes>
bool leaves(std::string_view text, const Passes&... passes) {
  return after(text, passes...) == print(graph_of(text));
}

constexpr std::string_view kConv = R"(
  q: u8[n,8,9,9]
  x = DequantizeLinear(q, xs[]{0.5}, xz:u8[]{128})
  w = DequantizeLinear(wq:i8[16,8,3,3], ws[]{0.125}, wz:i8[]{0}, axis=0)
  c = Conv(x, w, pads=[1,1,1,1])
  r = Relu(c)
  y = QuantizeLinear(r, ys[]{0.25}, yz:u8[]{0})
  return y
)";

TEST(QuantiseProducts, ConvolutionWithReluOnBytes) {
  EXPECT_EQ(after(kConv, QuantiseProducts()), dedent(R"(
    q: u8[n,8,9,9]
    y = QLinearConv(q, xs[]{0.5}, xz:u8[]{128}, wq:i8[16,8,3,3], ws[]{0.125}, wz:i8[]{0}, ys[]{0.25}, yz:u8[]{0}, activation=Relu, pads=[1,1,1,1])
    return y
  )"));
}

TEST(QuantiseProducts, ConvolutionsOfVolumesStayInFloats) {
  EXPECT_TRUE(leaves(QuantiseProducts(), R"(
    q: u8[n,8,5,9,9]
    x = DequantizeLinear(q, xs[]{0.5}, xz:u8[]{128})
    w = DequantizeLinear(wq:i8[16,8,3,3,3], ws[]{0.125}, wz:i8[]{0})
    c = Conv(x, w)
    y = QuantizeLinear(c, ys[]{0.25}, yz:u8[]{0})
    return y
  )"));
  EXPECT_THAT(after(QuantiseProducts(),
                    "q: u8[n,8,5,9,9]\ny = QLinearConv(q, xs[]{0.5}, xz:u8[]{128}, wq:i8[16,8,3,3,3], ws[]{0.125}, wz:i8[]{0}, ys[]{0.25}, "
                    "yz:u8[]{0})\nreturn y"),
              ::testing::HasSubstr(" = Conv("));
}

TEST(QuantiseProducts, BiasBecomesWholeMultiplesOfTheProductsScale) {
  Graph graph = graph_of(R"(
    q: u8[4,3]
    a = DequantizeLinear(q, as[]{0.5}, az:u8[]{128})
    b = DequantizeLinear(bq:i8[3,2], bs[]{0.25}, bz:i8[]{0})
    c = DequantizeLinear(cq:i32[2]{4,-6}, cs[]{0.25}, cz:i32[]{0})
    y = Gemm(a, b, c)
    return y
  )");
  const auto changed = QuantiseProducts().run(graph);
  ASSERT_TRUE(changed && *changed);
  const auto products = graph.nodes(Op::kQuantizedMatMul);
  ASSERT_EQ(products.size(), 1U);
  const ConstantPtr bias = graph.constant(graph.input(products[0], 6));
  ASSERT_TRUE(bias);
  EXPECT_EQ(bias->span<int32_t>()[0], 8);
  EXPECT_EQ(bias->span<int32_t>()[1], -12);
}

TEST(QuantiseProducts, LeavesWhatIsNoUnit) {
  EXPECT_TRUE(leaves(R"(
    q: u8[4,3]
    s: f32[]
    a = DequantizeLinear(q, s)
    b = DequantizeLinear(bq:i8[3,2], bs[]{0.25})
    y = MatMul(a, b)
    return y
  )",
                     QuantiseProducts()))
      << "a scale that is computed";
  EXPECT_TRUE(leaves(R"(
    q: u8[n,8,9,9]
    x = DequantizeLinear(q, xs[]{0.5}, xz:u8[]{128})
    w = DequantizeLinear(wq:i8[16,8,3,3], ws[]{0.125}, wz:i8[]{0}, axis=0)
    y = Conv(x, w)
    z = QuantizeLinear(y, ys[]{0.25}, yz:u8[]{0})
    return y, z
  )",
                     QuantiseProducts()))
      << "the floats are asked for, too";
}

TEST(QuantiseUnits, MoversWorkOnBytes) {
  EXPECT_EQ(after(R"(
    q: u8[n,8,4,4]
    x = DequantizeLinear(q, s[]{0.5}, z:u8[]{3})
    m = MaxPool(x, kernel_shape=[2,2], strides=[2,2])
    a = QuantizeLinear(m, s2[]{0.5}, z2:u8[]{3})
    b = DequantizeLinear(a, s2, z2)
    f = Flatten(b, axis=1)
    y = QuantizeLinear(f, s3[]{0.5}, z3:u8[]{3})
    return y
  )",
                  QuantiseUnits()),
            dedent(R"(
    q: u8[n,8,4,4]
    a = MaxPool(q, kernel_shape=[2,2], strides=[2,2])
    y = Flatten(a, axis=1)
    return y
  )"));
}

TEST(QuantiseUnits, LeavesAMoverBetweenTwoScales) {
  EXPECT_TRUE(leaves(R"(
    q: u8[4,4]
    x = DequantizeLinear(q, s[]{0.5}, z:u8[]{3})
    t = Transpose(x, perm=[1,0])
    y = QuantizeLinear(t, s2[]{0.25}, z2:u8[]{3})
    return y
  )",
                     QuantiseUnits()));
}

TEST(QuantiseUnits, SumsOnBytes) {
  EXPECT_EQ(after(R"(
    p: u8[n,4]
    q: i8[n,4]
    a = DequantizeLinear(p, as[]{0.5}, az:u8[]{3})
    b = DequantizeLinear(q, bs[]{0.25}, bz:i8[]{0})
    c = Add(a, b)
    r = Relu(c)
    y = QuantizeLinear(r, ys[]{1.0}, yz:u8[]{0})
    return y
  )",
                  QuantiseUnits()),
            dedent(R"(
    p: u8[n,4]
    q: i8[n,4]
    y = QuantizedBinary(p, as[]{0.5}, az:u8[]{3}, q, bs[]{0.25}, bz:i8[]{0}, ys[]{1.0}, yz:u8[]{0}, activation=Relu, function=Add)
    return y
  )"));
}

TEST(QuantiseChains, ResidualAndReluMoveIntoTheConvolution) {
  EXPECT_EQ(after(R"(
    x: i8[n,4,5,5]
    r: i8[n,6,5,5]
    c = QLinearConv(x, xs[]{0.5}, xz:i8[]{0}, w:i8[6,4,1,1], ws[6], wz:i8[]{0}, cs[]{0.25}, cz:i8[]{0})
    s = QuantizedBinary(c, cs, cz, r, rs[]{0.125}, rz:i8[]{0}, ss[]{0.5}, sz:i8[]{0}, function=Add)
    d = DequantizeLinear(s, ss, sz)
    e = Relu(d)
    y = QuantizeLinear(e, ys[]{0.375}, yz:i8[]{0})
    return y
  )",
                  QuantiseChains()),
            dedent(R"(
    x: i8[n,4,5,5]
    r: i8[n,6,5,5]
    y = QLinearConv(x, xs[]{0.5}, xz:i8[]{0}, w:i8[6,4,1,1], ws[6], wz:i8[]{0}, cs[]{0.25}, cz:i8[]{0}, _, r, rs[]{0.125}, rz:i8[]{0}, ss[]{0.5}, sz:i8[]{0}, again_activation=Relu, again_scale=0.375, again_zero=0)
    return y
  )"));
}

TEST(QuantiseFunctions, ScalesMeetBeforeAConcat) {
  EXPECT_EQ(after(R"(
    p: u8[n,4]
    q: u8[n,4]
    a = DequantizeLinear(p, s[]{0.5}, z:u8[]{3})
    b = DequantizeLinear(q, t[]{0.25}, v:u8[]{0})
    c = Concat(a, b, axis=1)
    y = QuantizeLinear(c, ys[]{0.5}, yz:u8[]{3})
    return y
  )",
                  QuantiseFunctions(nullptr)),
            dedent(R"(
    p: u8[n,4]
    q: u8[n,4]
    c+y = QuantizedLookup(q, c+y.table:u8[256])
    y = Concat(p, c+y, axis=1)
    return y
  )"));
}

TEST(QuantiseFunctions, AByteTimesAFunctionOfItIsAFunctionOfIt) {
  EXPECT_EQ(after(R"(
    x: u8[n,4]
    l = QuantizedLookup(x, t:u8[256])
    y = QuantizedBinary(x, s[]{0.5}, z:u8[]{3}, l, r[]{0.25}, q:u8[]{0}, v[]{0.5}, w:u8[]{3}, function=Mul)
    return y
  )",
                  QuantiseFunctions(nullptr)),
            dedent(R"(
    x: u8[n,4]
    y = QuantizedLookup(x, y.table:u8[256])
    return y
  )"));
}

TEST(QuantiseProducts, AConvolutionWhoseWeightHasAZeroPointReturnsToFloats) {
  EXPECT_EQ(after(R"(
    q: u8[n,8,9,9]
    y = QLinearConv(q, xs[]{0.5}, xz:u8[]{128}, w:u8[1,8,1,1]{255,0,0,0,0,0,0,0}, ws[]{0.25}, wz:u8[]{127}, ys[]{0.25}, yz:u8[]{0})
    return y
  )",
                  QuantiseProducts()),
            dedent(R"(
    q: u8[n,8,9,9]
    y = DequantizeLinear(q, xs[]{0.5}, xz:u8[]{128}, axis=1)
    y~2 = DequantizeLinear(w:u8[1,8,1,1]{255,0,0,0,0,0,0,0}, ws[]{0.25}, wz:u8[]{127}, axis=0)
    y~3 = Conv(y, y~2)
    y~4 = QuantizeLinear(y~3, ys[]{0.25}, yz:u8[]{0}, axis=1)
    return y~4
  )"));
}

TEST(QuantiseProducts, WeightsThatFitMoveAroundZero) {
  Graph graph = graph_of(R"(
    q: u8[n,2,9,9]
    x = DequantizeLinear(q, xs[]{0.5}, xz:u8[]{128})
    w = DequantizeLinear(wq:u8[3,2,1,1]{0,127,127,0,20,255}, ws[3], wz:u8[3]{64,63,128}, axis=0)
    c = Conv(x, w)
    y = QuantizeLinear(c, ys[]{0.25}, yz:u8[]{0})
    return y
  )");
  const auto changed = QuantiseProducts().run(graph);
  ASSERT_TRUE(changed && *changed);
  const Node& conv = graph.node(graph.producer(graph.outputs()[0]));
  ASSERT_EQ(conv.op, Op::kQLinearConv);
  const ConstantPtr weight = graph.constant(conv.inputs[3]), zero = graph.constant(conv.inputs[5]);
  ASSERT_EQ(weight->dtype, DType::kInt8);
  const auto bytes = weight->span<int8_t>();
  EXPECT_EQ(std::vector<int>(bytes.begin(), bytes.end()), (std::vector<int>{-64, 63, 64, -63, -108, 127}));
  EXPECT_EQ(zero->dtype, DType::kInt8);
  const auto zeros = zero->span<int8_t>();
  EXPECT_EQ(std::vector<int>(zeros.begin(), zeros.end()), (std::vector<int>{0, 0, 0}));
}

TEST(QuantiseProducts, WeightsThatMoveKeepAZeroPointForEachScale) {
  for (const char* reader : {"y = Conv(x, w)\nreturn y", "y = ConvTranspose(x, w)\nreturn y"}) {
    Graph graph = graph_of("x: f32[n,2,9,9]\nw = DequantizeLinear(q:u8[2,2,1,1]{0,127,127,0}, ws[2], wz:u8[2]{64,63}, axis=0)\n" +
                           std::string(reader));
    const auto changed = QuantiseProducts().run(graph);
    ASSERT_TRUE(changed && *changed);
    const auto inferred = infer_shapes(graph);
    EXPECT_TRUE(inferred) << inferred.error().message;
  }
  Graph volume = graph_of(
      "q: u8[n,2,5,9,9]\ny = QLinearConv(q, xs[]{0.5}, xz:u8[]{128}, w:u8[2,2,1,1,1]{0,127,127,0}, ws[2], wz:u8[2]{64,63}, "
      "ys[]{0.25}, yz:u8[]{0})\nreturn y");
  const auto changed = QuantiseProducts().run(volume);
  ASSERT_TRUE(changed && *changed);
  const auto inferred = infer_shapes(volume);
  EXPECT_TRUE(inferred) << inferred.error().message;
}

TEST(QuantiseUnits, ASplitIntoPartsOfOneScale) {
  EXPECT_EQ(after(R"(
    q: u8[n,8]
    x = DequantizeLinear(q, s[]{0.5}, z:u8[]{3})
    a, b = Split(x, axis=1, split=[4,4])
    c = QuantizeLinear(a, t[]{0.5}, u:u8[]{3})
    d = QuantizeLinear(b, v[]{0.5}, w:u8[]{3})
    return c, d
  )",
                  QuantiseUnits()),
            dedent(R"(
    q: u8[n,8]
    c, d = Split(q, axis=1, split=[4,4])
    return c, d
  )"));
}

TEST(QuantiseProducts, AMatrixMayHaveAZeroPoint) {
  EXPECT_EQ(after(R"(
    q: u8[4,8]
    a = DequantizeLinear(q, s[]{0.5}, z:u8[]{3})
    b = DequantizeLinear(bq:u8[8,1]{255,0,0,0,0,0,0,0}, bs[]{0.25}, bz:u8[]{120})
    y = MatMul(a, b)
    return y
  )",
                  QuantiseProducts()),
            dedent(R"(
    q: u8[4,8]
    y = QuantizedMatMul(q, s[]{0.5}, z:u8[]{3}, bq:u8[8,1]{255,0,0,0,0,0,0,0}, bs[]{0.25}, bz:u8[]{120})
    return y
  )"));
}

TEST(QuantiseProducts, AProductOfBytesFromTheFileHasAKernelWhereItsMatrixIsKnown) {
  EXPECT_EQ(after(R"(
    q: u8[4,8]
    y = QLinearMatMul(q, s[]{0.5}, z:u8[]{3}, b:i8[8,1]{-128,0,0,0,0,0,0,0}, bs[]{0.5}, bz:i8[]{3}, ys[]{0.25}, yz:u8[]{7})
    return y
  )",
                  QuantiseProducts()),
            dedent(R"(
    q: u8[4,8]
    y = QuantizedMatMul(q, s[]{0.5}, z:u8[]{3}, b:i8[8,1]{-128,0,0,0,0,0,0,0}, bs[]{0.5}, bz:i8[]{3}, _, ys[]{0.25}, yz:u8[]{7})
    return y
  )"));
  EXPECT_TRUE(leaves(R"(
    q: u8[4,8]
    b: i8[8,16]
    y = QLinearMatMul(q, s[]{0.5}, z:u8[]{3}, b, bs[16], bz:i8[]{3}, ys[]{0.25}, yz:u8[]{7})
    return y
  )",
                     QuantiseProducts()));
}

TEST(QuantiseLayout, TransposesAtTheBordersOfARegionOnly) {
  EXPECT_EQ(after(R"(
    x: u8[n,4,5,5]
    a = QLinearConv(x, s[]{0.5}, z:u8[]{0}, w:i8[6,4,1,1], ws[6], wz:i8[]{0}, s, z)
    b = QLinearConv(a, s, z, v:i8[6,6,1,1], vs[6], vz:i8[]{0}, s, z)
    y = QuantizedBinary(a, s, z, b, s, z, s, z, function=Add)
    return y
  )",
                  QuantiseLayout()),
            dedent(R"(
    x: u8[n,4,5,5]
    x.channels_last = Transpose(x, perm=[0,2,3,1])
    a.channels_last = QLinearConv(x.channels_last, s[]{0.5}, z:u8[]{0}, w:i8[6,4,1,1], ws[6], wz:i8[]{0}, s[]{0.5}, z:u8[]{0}, channels_last=1)
    b.channels_last = QLinearConv(a.channels_last, s[]{0.5}, z:u8[]{0}, v:i8[6,6,1,1], vs[6], vz:i8[]{0}, s[]{0.5}, z:u8[]{0}, channels_last=1)
    y.channels_last = QuantizedBinary(a.channels_last, s[]{0.5}, z:u8[]{0}, b.channels_last, s[]{0.5}, z:u8[]{0}, s[]{0.5}, z:u8[]{0}, function=Add)
    y = Transpose(y.channels_last, perm=[0,3,1,2])
    return y
  )"));
}

TEST(QuantiseLayout, TakesOneSpatialAxisToo) {
  const std::string text = after(R"(
    x: u8[n,4,9]
    a = QLinearConv(x, s[]{0.5}, z:u8[]{0}, w:i8[6,4,3], ws[6], wz:i8[]{0}, s, z)
    y = Concat(a, a, axis=1)
    return y
  )",
                                 QuantiseLayout());
  EXPECT_THAT(text, testing::HasSubstr("x.channels_last = Transpose(x, perm=[0,2,1])"));
  EXPECT_THAT(text, testing::HasSubstr("y.channels_last = Concat(a.channels_last, a.channels_last, axis=2)"));
  EXPECT_THAT(text, testing::HasSubstr("y = Transpose(y.channels_last, perm=[0,2,1])"));
}

TEST(QuantiseLayout, JoinsAndFactorsOfChannelsStayInTheRegion) {
  const std::string text = after(R"(
    x: u8[n,4,5,5]
    a = QLinearConv(x, s[]{0.5}, z:u8[]{0}, w:i8[6,4,1,1], ws[6], wz:i8[]{0}, s, z)
    p = QuantizedGlobalAveragePool(a, s, z, s, z)
    b = QuantizedBinary(p, s, z, a, s, z, s, z, function=Mul)
    y = Concat(a, b, axis=1)
    return y
  )",
                                 QuantiseLayout());
  EXPECT_THAT(text, testing::HasSubstr("b.channels_last = QuantizedBinary(p.channels_last, s[]{0.5}, z:u8[]{0}, a.channels_last,"));
  EXPECT_THAT(text, testing::HasSubstr("y.channels_last = Concat(a.channels_last, b.channels_last, axis=3)"));
  EXPECT_THAT(text, testing::HasSubstr("y = Transpose(y.channels_last, perm=[0,3,1,2])"));
}

TEST(QuantiseChains, NothingIsAddedBehindADepthwiseConvolution) {
  EXPECT_TRUE(leaves(R"(
    x: u8[n,6,5,5]
    a = QLinearConv(x, s[]{0.5}, z:u8[]{0}, w:i8[6,1,1,1], ws[6], wz:i8[]{0}, s, z, group=6)
    y = QuantizedBinary(a, s, z, x, s, z, s, z, function=Add)
    return y
  )",
                     QuantiseChains()));
}

TEST(QuantiseDynamic, OneOperatorForAProductThatQuantisesFirst) {
  EXPECT_EQ(after(R"(
    x: f32[n,seq,4]
    q, s, z = DynamicQuantizeLinear(x)
    p = MatMulInteger(q, w:i8[4,6], z, wz:i8[]{0})
    c = Cast(p, to=f32)
    t = Mul(s, ws[]{0.5})
    m = Mul(c, t)
    y = Add(bias[6], m)
    return y
  )",
                  QuantiseDynamic()),
            dedent(R"(
    x: f32[n,seq,4]
    y = DynamicQuantizeMatMul(x, w:i8[4,6], ws[]{0.5}, wz:i8[]{0}, bias[6])
    return y
  )"));
}

TEST(QuantiseDynamic, AConvolutionOfWhatWasRoundedIsComputedInFloats) {
  const std::string text = R"(
    x: f32[n,1,3,3]
    q, s, z = DynamicQuantizeLinear(x)
    c = ConvInteger(q, w:u8[2,1,1,1]{7,1}, z, wz:u8[]{3}, strides=[2,2])
    f = Cast(c, to=f32)
    t = Mul(s, ws[]{0.5})
    m = Mul(f, t)
    return m
  )";
  EXPECT_EQ(after(text, QuantiseDynamic()), dedent(R"(
    x: f32[n,1,3,3]
    q, s, z = DynamicQuantizeLinear(x)
    c+f+m = DequantizeLinear(q, s, z, axis=1)
    m = Conv(c+f+m, w'[2,1,1,1], strides=[2,2])
    return m
  )"));
  Graph graph = graph_of(text);
  ASSERT_TRUE(QuantiseDynamic().run(graph));
  const auto weight = graph.constant(graph.input(graph.nodes(Op::kConv).front(), 1))->span<float>();
  EXPECT_FLOAT_EQ(weight[0], 2);  // (7 - 3) * 0.5
  EXPECT_FLOAT_EQ(weight[1], -1);
}

}  // namespace
}  // namespace serin::graph
