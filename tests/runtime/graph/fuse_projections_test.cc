// fuse_projections, before and after, and what it leaves alone.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/proofs/paddable.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

const std::string kProducts =
    "q = FusedMatMul(x, wq[16,8], bq[8])\nk = FusedMatMul(x, wk[16,8], bk[8])\nv = FusedMatMul(x, wv[16,8], bv[8])\n";
const std::string kHeads =
    "qh = Reshape(q, i64{0,0,2,4})\nkh = Reshape(k, i64{0,0,2,4})\nvh = Reshape(v, i64{0,0,2,4})\n"
    "qt = Transpose(qh, perm=[0,2,1,3])\nkt = Transpose(kh, perm=[0,2,1,3])\nvt = Transpose(vh, perm=[0,2,1,3])\n";
const std::string kAttention = "y = Attention(qt, kt, vt, scale=0.5)\n";

/// A layer as BERT has it, with two heads of four. The first line is the input, so that a test can write another.
std::string layer(const std::string& products = kProducts, const std::string& heads = kHeads, const std::string& attention = kAttention,
                  const std::string& results = "y") {
  return "x: f32[n,s,16]\n" + products + heads + attention + "return " + results + "\n";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no '" + from + "' in " + text);
  return text.replace(at, from.size(), to);
}

std::string joined(const std::string& text) { return after(FuseProjections(), text); }

size_t times(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::vector<float> floats_of(const Graph& graph, std::string_view name) {
  for (size_t i = 0; i < graph.value_capacity(); ++i) {
    const Value& value = graph.value(static_cast<ValueId>(i));
    if (value.name != name || !value.constant) continue;
    const auto span = value.constant->span<float>();
    return {span.begin(), span.end()};
  }
  throw std::runtime_error("no constant " + std::string(name));
}

TEST(FuseProjections, ThreeProductsOfTheSameRowsAreOne) {
  EXPECT_EQ(joined(layer()), dedent(R"(
    x: f32[n,s,16]
    q+k+v = FusedMatMul(x, q+k+v.weight[16,24], q+k+v.bias[24])
    q, k, v = Split(q+k+v, axis=2, split=[8,8,8])
    qh = Reshape(q, i64{0,0,2,4})
    kh = Reshape(k, i64{0,0,2,4})
    vh = Reshape(v, i64{0,0,2,4})
    qt = Transpose(qh, perm=[0,2,1,3])
    kt = Transpose(kh, perm=[0,2,1,3])
    vt = Transpose(vh, perm=[0,2,1,3])
    y = Attention(qt, kt, vt, scale=0.5)
    return y
  )"));
}

TEST(FuseProjections, WeightsStandSideBySideAndBiasesHaveZerosWhereThereIsNone) {
  Graph graph = graph_of(layer("q = FusedMatMul(x, wq[16,8], bq[8])\nk = MatMul(x, wk[16,8])\nv = FusedMatMul(x, wv[16,8], bv[1,8])\n"));
  const auto wq = floats_of(graph, "wq"), wk = floats_of(graph, "wk"), wv = floats_of(graph, "wv");
  const auto bq = floats_of(graph, "bq"), bv = floats_of(graph, "bv");
  ASSERT_TRUE(apply(FuseProjections(), graph));
  const auto weight = floats_of(graph, "q+k+v.weight"), bias = floats_of(graph, "q+k+v.bias");
  ASSERT_EQ(weight.size(), 16U * 24);
  ASSERT_EQ(bias.size(), 24U);
  for (size_t column = 0; column < 8; ++column) {
    for (size_t row = 0; row < 16; ++row) {
      EXPECT_EQ(weight[row * 24 + column], wq[row * 8 + column]);
      EXPECT_EQ(weight[row * 24 + 8 + column], wk[row * 8 + column]);
      EXPECT_EQ(weight[row * 24 + 16 + column], wv[row * 8 + column]);
    }
    EXPECT_EQ(bias[column], bq[column]);
    EXPECT_EQ(bias[8 + column], 0);
    EXPECT_EQ(bias[16 + column], bv[column]);
  }
}

TEST(FuseProjections, TransposedWeightsStandBelowEachOtherAndKeysMayHaveFewerHeads) {
  Graph graph = graph_of(
      layer("q = FusedMatMul(x, wq[16,16], transB=1)\nk = FusedMatMul(x, wk[8,16], transB=1)\nv = FusedMatMul(x, wv[8,16], transB=1)\n",
            with(kHeads, "Reshape(q, i64{0,0,2,4})", "Reshape(q, i64{0,0,4,4})")));
  std::vector<float> expected;
  for (const char* const name : {"wq", "wk", "wv"}) {
    for (const float element : floats_of(graph, name)) expected.push_back(element);
  }
  ASSERT_TRUE(apply(FuseProjections(), graph));
  EXPECT_EQ(floats_of(graph, "q+k+v.weight"), expected);
  EXPECT_THAT(print(graph), testing::HasSubstr("q+k+v = FusedMatMul(x, q+k+v.weight[32,16], transB=1)\n"
                                               "q, k, v = Split(q+k+v, axis=2, split=[16,8,8])\n"));
}

TEST(FuseProjections, ALargeWeightIsMadeWhenItIsRead) {
  const std::string wide = "q = MatMul(x, wq[16,2048])\nk = MatMul(x, wk[16,2048])\nv = MatMul(x, wv[16,2048])\n";
  std::string heads = kHeads;
  for (int i = 0; i < 3; ++i) heads = with(heads, "{0,0,2,4}", "{0,0,2,1024}");
  Graph graph = graph_of(layer(wide, heads));
  ASSERT_TRUE(apply(FuseProjections(), graph));
  const ConstantPtr weight = graph.constant(graph.input(graph.nodes(Op::kFusedMatMul).front(), 1));
  EXPECT_EQ(weight->data_in_memory(), nullptr);
  EXPECT_EQ(weight->span<float>().size(), 16U * 3 * 2048);
}

TEST(FuseProjections, NumbersOnTheWayGoIntoTheScale) {  // Whisper multiplies its queries
  const std::string text = joined(layer(kProducts + "q4 = Mul(q, 0.25)\nk2 = Div(k, 2.0)\n",
                                        with(with(kHeads, "Reshape(q,", "Reshape(q4,"), "Reshape(k,", "Reshape(k2,")));
  EXPECT_THAT(text, testing::HasSubstr("y = Attention(qt, kt, vt, scale=0.0625)\n"));
  EXPECT_EQ(text.find("Mul(q,"), std::string::npos) << text;
  EXPECT_EQ(text.find("Div("), std::string::npos) << text;
  EXPECT_TRUE(leaves(FuseProjections(), layer(kProducts + "v2 = Mul(v, 0.25)\n", with(kHeads, "Reshape(v,", "Reshape(v2,"))))
      << "the scale does not reach the values";
  EXPECT_TRUE(leaves(FuseProjections(),
                     layer(kProducts + "q4 = Mul(q, 0.25)\n", with(kHeads, "Reshape(q,", "Reshape(q4,"), "y = Attention(qt, kt, vt)\n")))
      << "the scale is not known here";
}

TEST(FuseProjections, AShapeIsNoReader) {  // T5 asks its keys how long they are
  EXPECT_EQ(times(joined(layer(kProducts, kHeads + "length = Shape(kt)\nwidth = Shape(v)\n", kAttention, "y, length, width")), "Split("),
            1U);
}

TEST(FuseProjections, RowsOfAllSamplesAsOneAxis) {
  const auto flat = [](const std::string& shape, const std::string& perm) {
    std::string text = "x: f32[30,16]\n" + kProducts + kHeads + kAttention + "return y\n";
    for (int i = 0; i < 3; ++i) text = with(with(text, "{0,0,2,4}", shape), "[0,2,1,3]", perm);
    return joined(text);
  };
  EXPECT_EQ(times(flat("{5,6,2,4}", "[0,2,1,3]"), "Split("), 1U);
  EXPECT_EQ(times(flat("{6,5,2,4}", "[1,2,0,3]"), "Split("), 1U) << "the sequence first";
}

TEST(FuseProjections, HeadsThatAreSamplesForAWhile) {  // torch's MultiheadAttention
  EXPECT_EQ(times(joined(layer(kProducts, dedent(R"(
    qs = Transpose(q, perm=[1,0,2])
    ks = Transpose(k, perm=[1,0,2])
    vs = Transpose(v, perm=[1,0,2])
    size = Shape(qs)
    length = Slice(size, starts=[0], ends=[1], axes=[0], steps=[1])
    joined = Concat(length, i64{-1,4}, axis=0)
    qj = Reshape(qs, joined)
    kj = Reshape(ks, joined)
    vj = Reshape(vs, joined)
    ql = Transpose(qj, perm=[1,0,2])
    kl = Transpose(kj, perm=[1,0,2])
    vl = Transpose(vj, perm=[1,0,2])
    heads = Concat(i64{-1,2}, length, i64{4}, axis=0)
    qt = Reshape(ql, heads)
    kt = Reshape(kl, heads)
    vt = Reshape(vl, heads)
  )"))),
                  "Split("),
            1U);
}

TEST(FuseProjections, LayersThatShareTheirWeightsShareTheJoinedOne) {  // ALBERT
  const std::string shared = "x: f32[n,s,16]\nz: f32[n,s,16]\n" + kProducts + kHeads + kAttention;
  std::string second = "o = FusedMatMul(z, wq[16,8], bq[8])\np = FusedMatMul(z, wk[16,8], bk[8])\nr = FusedMatMul(z, wv[16,8], bv[8])\n" +
                       kHeads + "t = Attention(ot, pt, rt, scale=0.5)\nreturn y, t\n";
  for (const auto& [from, to] : {std::pair("q", "o"), std::pair("k", "p"), std::pair("v", "r")}) {
    const std::string a = from, b = to;
    second = with(with(with(with(second, a + "h = ", b + "h = "), "Reshape(" + a, "Reshape(" + b), a + "t = ", b + "t = "), "(" + a + "h, ",
                  "(" + b + "h, ");
  }
  Graph graph = graph_of(shared + second);
  ASSERT_TRUE(apply(FuseProjections(), graph));
  const auto products = graph.nodes(Op::kFusedMatMul);
  ASSERT_EQ(products.size(), 2U) << print(graph);
  EXPECT_EQ(graph.input(products[0], 1), graph.input(products[1], 1));
  EXPECT_EQ(graph.input(products[0], 2), graph.input(products[1], 2));
}

TEST(FuseProjections, PaddingIsProvenAsBefore) {  // scores are bounded through the Split, and a mask of -10000 is below them
  Graph graph = graph_of(
      "x: f32[n,s,16]\nm: f32[n,s]\nu = LayerNormalization(x, g[16], b[16])\nwide = Unsqueeze(m, axes=[1,2])\n"
      "hidden = Sub(1.0, wide)\nbias = Mul(hidden, f32[]{-10000.0})\n" +
      with(with(with(kProducts, "(x,", "(u,"), "(x,", "(u,"), "(x,", "(u,") + kHeads +
      "y = Attention(qt, kt, vt, bias, scale=0.5)\nreturn y\n");
  EXPECT_EQ(prove_paddable(graph, "s").why_not, "");
  ASSERT_TRUE(apply(FuseProjections(), graph));
  EXPECT_EQ(graph.nodes(Op::kSplit).size(), 1U);
  EXPECT_EQ(prove_paddable(graph, "s").why_not, "");
}

TEST(FuseProjections, LeavesProductsThatDiffer) {
  const auto apart = [](const std::string& from, const std::string& to, const std::string& inputs = "") {
    return leaves(FuseProjections(), inputs + layer(with(kProducts, from, to)));
  };
  EXPECT_TRUE(apart("MatMul(x, wk", "MatMul(z, wk", "z: f32[n,s,16]\n")) << "attention to something else";
  EXPECT_TRUE(apart("wk[16,8], bk[8]", "w, bk[8]", "w: f32[16,8]\n")) << "a weight that is computed";
  EXPECT_TRUE(apart("wk[16,8], bk[8]", "wk[16,8], b", "b: f32[8]\n")) << "a bias that is computed";
  EXPECT_TRUE(apart("wk[16,8], bk[8]", "wk[16,8], bk[1]")) << "one number for all columns";
  EXPECT_TRUE(apart("bk[8])", "bk[8], r)", "r: f32[n,s,8]\n")) << "a residual";
  EXPECT_TRUE(apart("bk[8])", "bk[8], activation=Relu)")) << "an activation";
  EXPECT_TRUE(apart("wk[16,8], bk[8])", "wk[8,16], bk[8], transB=1)")) << "one is transposed";
}

TEST(FuseProjections, LeavesWhatAttentionCannotReadByStrides) {
  const auto apart = [](const std::string& heads, const std::string& attention = kAttention, const std::string& results = "y") {
    return leaves(FuseProjections(), layer(kProducts, heads, attention, results));
  };
  EXPECT_TRUE(apart(kHeads, kAttention, "y, kt")) << "keys are results, too";
  EXPECT_TRUE(apart(kHeads, "z = Relu(v)\n" + kAttention, "y, z")) << "values have another reader";
  EXPECT_TRUE(apart(with(kHeads, "qt = ", "qr = ") + "qt = Neg(qr)\n")) << "something between";
  EXPECT_TRUE(
      leaves(FuseProjections(),
             "p: f32[n,2,t,4]\n" + layer(kProducts, kHeads, "y, k2, v2 = Attention(qt, kt, vt, _, p, p, scale=0.5)\n", "y, k2, v2")))
      << "a cache";
  EXPECT_TRUE(
      leaves(FuseProjections(), "x: f32[n,6,16]\n" + kProducts +
                                    "qt = Reshape(q, i64{0,2,6,4})\nkt = Reshape(k, i64{0,2,6,4})\nvt = Reshape(v, i64{0,2,6,4})\n" +
                                    kAttention + "return y\n"))
      << "heads of adjacent rows";
  EXPECT_TRUE(leaves(FuseProjections(),
                     "x: f32[n,s,16]\nq = MatMul(x, wq[16,8])\nh = Reshape(q, i64{0,0,2,4})\n"
                     "t = Transpose(h, perm=[0,2,1,3])\ny = Attention(t, t, t, scale=0.5)\nreturn y\n"))
      << "one product already";
}

TEST(FuseProjections, LeavesRowsThatOnlyARunCounts) {
  const std::string text = layer();
  EXPECT_TRUE(leaves(
      FuseProjections(),
      with(text, "x: f32[n,s,16]\n", "m: f32[s]\nw: f32[n,s,16]\ni = NonZero(m)\nj = Squeeze(i, axes=[0])\nx = Gather(w, j, axis=1)\n")));
}

TEST(FuseProjections, LeavesOtherNumbers) {
  const std::string weight = "f64[1,8]{1,2,3,4,5,6,7,8})\n";
  EXPECT_TRUE(leaves(FuseProjections(), "x: f64[n,s,1]\nq = MatMul(x, " + weight + "k = MatMul(x, " + weight + "v = MatMul(x, " + weight +
                                            kHeads + kAttention + "return y\n"));
}

}  // namespace
}  // namespace serin::graph
