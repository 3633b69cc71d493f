// How large elements can get: each rule by numbers that are easy to see, and what must stay unknown. That nothing computed is larger is tests/runtime/engine's to show.

#include "runtime/graph/proofs/magnitudes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "runtime/graph/proofs/magnitudes_product.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

constexpr double kRoom = 1.1;  // for what is rounded, and for how far bounds of singular values are off

/// Of the first output.
double bound(const std::string& text, Piece piece = {}) {
  const Graph graph = graph_of(text);
  return Magnitudes(graph).of(graph.outputs()[0], piece);
}
/// At least that, and not much more.
void expect_bound(double expected, const std::string& text, Piece piece = {}) {
  const double found = bound(text, piece);
  EXPECT_GE(found, expected) << text;
  EXPECT_LE(found, expected * kRoom) << text;
}
void expect_unknown(const std::string& text, Piece piece = {}) { EXPECT_EQ(bound(text, piece), Magnitudes::kUnknown) << text; }

/// Rows of 4 elements whose 2-norm is 2: a normalisation without scale and shift.
const std::string kUnit = "x: f32[n,4]\nu = LayerNormalization(x, g:f32[4]{1,1,1,1}, z:f32[4]{0,0,0,0})\n";

TEST(Magnitudes, ANormalisationBoundsWhateverGoesIn) {
  expect_bound(2, kUnit + "return u\n");
  expect_bound(2, kUnit + "return u\n", {1, 4});
  expect_bound(2 * 3 + 5, "x: f32[n,4]\ny = LayerNormalization(x, g:f32[4]{1,-3,2,0}, b:f32[4]{0,0,3,4})\nreturn y\n", {1, 4});
  expect_bound(2 * 3, "x: f32[n,4]\ny = RMSNormalization(x, g:f32[4]{1,-3,2,0})\nreturn y\n", {1, 4});
  expect_unknown("x: f32[n,4]\ny = LayerNormalization(x, g:f32[4]{1,1,1,1}, z:f32[4]{0,0,0,0}, epsilon=0.0)\nreturn y\n");
  expect_unknown("x: f32[n,4,4]\ny = LayerNormalization(x, g:f32[4]{1,1,1,1}, z:f32[4]{0,0,0,0}, axis=1)\nreturn y\n");
  expect_unknown("x: f32[n,4]\nreturn x\n");
}

TEST(Magnitudes, ProductsWithWeightsStretchByTheLargestSingularValue) {
  const std::string diagonal = "w:f32[4,4]{3,0,0,0, 0,5,0,0, 0,0,1,0, 0,0,0,2}";
  expect_bound(2 * 5, kUnit + "y = MatMul(u, " + diagonal + ")\nreturn y\n", {1, 4});
  expect_bound(2 * 5, kUnit + "y = MatMul(u, " + diagonal + ")\nreturn y\n", {1, 2});
  expect_bound(2 * 5 + 6, kUnit + "y = FusedMatMul(u, " + diagonal + ", b:f32[4]{-6,6,6,6})\nreturn y\n");
  expect_bound(2 * 5, kUnit + "y = FusedMatMul(u, " + diagonal + ", activation=\"Gelu\")\nreturn y\n", {1, 4});
  expect_unknown(kUnit + "y = FusedMatMul(u, " + diagonal + ", activation=\"Elu\", alpha=2.0)\nreturn y\n");
  const std::string ones = "w:f32[4,2]{1,1, 1,1, 1,1, 1,1}";  // one singular value
  expect_bound(2 * std::sqrt(8.0), kUnit + "y = MatMul(u, " + ones + ")\nreturn y\n", {1, 2});
  expect_bound(2 * std::sqrt(8.0), kUnit + "y = FusedMatMul(u, w:f32[2,4]{1,1,1,1, 1,1,1,1}, transB=1)\nreturn y\n", {1, 2});
}

TEST(Magnitudes, ScaleAndShiftOfTheNormalisationArePartOfTheWeights) {
  // By itself the row may be as long as 2 * 100 + 50; its long element has a small weight, and the shift is taken away again by the bias.
  const std::string x = "x: f32[n,4]\nu = LayerNormalization(x, g:f32[4]{100,1,1,1}, b:f32[4]{0,50,0,0})\n";
  const double found = bound(x + "y = FusedMatMul(u, w:f32[4,2]{0.01,0, 0,1, 0,0, 0,0}, c:f32[2]{0,-50})\nreturn y\n");
  EXPECT_GE(found, 2);
  EXPECT_LE(found, 2 + 0.04 * 250) << "what 250 may lose to rounding";
}

TEST(Magnitudes, HeadsAreBoundedEachByItself) {
  const std::string q = kUnit + "y = MatMul(u, w:f32[4,4]{3,0,0,0, 0,3,0,0, 0,0,1,0, 0,0,0,1})\nr = Reshape(y, i64{0,2,2})\n";
  expect_bound(6, q + "return r\n", {2, 2});
  expect_bound(6, q + "t = Transpose(r, perm=[1,2,0])\nreturn t\n", {1, 2});
  expect_bound(6, q + "a, b = Split(y, axis=1)\nreturn b\n", {1, 2});
  expect_bound(6, q + "b = Slice(y, axes=[1], starts=[1], ends=[3], steps=[1])\nreturn b\n", {1, 2});
  expect_bound(6, q + "b = Concat(r, r, axis=1)\nreturn b\n", {2, 2});
  expect_bound(6, q + "b = Gather(r, i64[]{1}, axis=1)\nreturn b\n", {1, 2});
}

TEST(Magnitudes, ScoresAreProductsOfTwoNorms) {
  const std::string q = "x: f32[n,s,4]\nu = LayerNormalization(x, g:f32[4]{1,1,1,1}, z:f32[4]{0,0,0,0})\n";
  expect_bound(4, q + "y = FusedMatMul(u, u, transB=1)\nreturn y\n");
  expect_bound(4, q + "t = Transpose(u, perm=[0,2,1])\ny = MatMul(u, t)\nreturn y\n");
  expect_bound(2, q + "y = FusedMatMul(u, u, transB=1)\nd = Div(y, 2.0)\nreturn d\n");
  expect_unknown(q + "y = FusedMatMul(u, x, transB=1)\nreturn y\n");
  expect_unknown(q + "y = FusedMatMul(u, u, transA=1)\nreturn y\n");  // a sum over as many as there are
}

TEST(Magnitudes, FunctionsOfOneElement) {
  expect_bound(2, kUnit + "y = Gelu(u)\nreturn y\n", {1, 4});
  expect_bound(2, kUnit + "y = Tanh(u)\nreturn y\n", {1, 4});
  expect_bound(1, "x: f32[n,4]\ny = Tanh(x)\nreturn y\n");
  expect_bound(1, "x: f32[n,4]\ny = Softmax(x)\nreturn y\n");
  expect_bound(2, "x: f32[n,4]\ny = Sigmoid(x)\nreturn y\n", {1, 4});
  expect_bound(4, kUnit + "y = LeakyRelu(u, alpha=-2.0)\nreturn y\n");
  expect_bound(2 + 3, kUnit + "y = Add(u, 3.0)\nreturn y\n");
  expect_bound(2 + 6, kUnit + "y = Sub(3.0, u)\nreturn y\n", {1, 4});
  expect_bound(2 * 3, kUnit + "y = Mul(u, f32[]{-3.0})\nreturn y\n", {1, 4});
  expect_bound(8, kUnit + "y = Div(u, f32[]{-0.25})\nreturn y\n");
  expect_unknown(kUnit + "y = Div(u, 0.0)\nreturn y\n");
  expect_unknown(kUnit + "y = Div(u, 1e-9)\nreturn y\n");  // 0 in 16 bits
  expect_unknown(kUnit + "y = Div(1.0, u)\nreturn y\n");
  expect_unknown(kUnit + "y = Exp(u)\nreturn y\n");
  expect_bound(7, "b: bool[n,4]\nx: f32[n,4]\ny = Where(b, 3.0, -7.0)\nreturn y\n");
  expect_unknown("b: bool[n,4]\nx: f32[n,4]\ny = Where(b, 3.0, x)\nreturn y\n");
  expect_bound(1, "b: bool[n,4]\ny = Cast(b, to=f32)\nreturn y\n");
  expect_unknown("i: i64[n,4]\ny = Cast(i, to=f32)\nreturn y\n");
  expect_unknown(kUnit + "i = Cast(u, to=u8)\ny = Cast(i, to=f32)\nreturn y\n");
  expect_unknown(kUnit + "i = Cast(u, to=u8)\nreturn i\n");  // -1 is 255
}

TEST(Magnitudes, TablesAndMeansOfRows) {
  const std::string table = "i: i64[n,s]\ne = Gather(t:f32[3,2]{3,4, 0,1, -1,0}, i)\n";
  expect_bound(5, table + "return e\n", {2, 2});
  expect_bound(4, table + "return e\n");
  const double mean = bound(table + "scores = FusedMatMul(e, e, transB=1)\np = Softmax(scores)\ny = MatMul(p, e)\nreturn y\n", {2, 2});
  EXPECT_GE(mean, 5);
  EXPECT_LE(mean, 5 * 4 * kRoom);
  const std::string heads = table + "r = Reshape(e, i64{0,0,1,2})\nq = Transpose(r, perm=[0,2,1,3])\n";
  EXPECT_LE(bound(heads + "y = Attention(q, q, q, heads_inside=1)\nreturn y\n", {3, 2}), 5 * 4 * kRoom);
}

TEST(Magnitudes, WeightsThatAreNoNumbers) {
  for (const char* const bad : {"inf", "-inf", "nan"}) {
    expect_unknown(kUnit + fmt::format("y = MatMul(u, w:f32[4,1]{{1,0,{},0}})\nreturn y\n", bad));
    expect_unknown(kUnit + fmt::format("y = Add(u, w:f32[4]{{1,0,{},0}})\nreturn y\n", bad));
    expect_unknown(kUnit + fmt::format("y = FusedMatMul(u, v[4,1], b:f32[1]{{{}}})\nreturn y\n", bad));
    expect_unknown(fmt::format("x: f32[n,4]\ny = LayerNormalization(x, g:f32[4]{{1,{},1,1}}, z:f32[4]{{0,0,0,0}})\nreturn y\n", bad));
  }
}

TEST(Magnitudes, DeepGraphsEnd) {
  const auto doubled = [](int times) {
    std::string text = kUnit + "v0 = Relu(u)\n";
    for (int i = 0; i < times; ++i) text += fmt::format("v{} = Add(v{}, v{})\n", i + 1, i, i);
    return text + fmt::format("return v{}\n", times);
  };
  expect_bound(2 * 8, doubled(3));
  expect_unknown(doubled(5000));
}

TEST(LargestSingularValue, LiesBetweenWhatIsReachedAndAFewPercentMore) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (const auto& [count, depth] : {std::pair{1, 9}, {2, 2}, {32, 100}, {64, 16}, {300, 20}}) {
    Columns matrix{count, depth, {}};
    for (int i = 0; i < count * depth; ++i) matrix.elements.push_back(normal(random) * (i / depth == 3 ? 50 : 1));
    const double bound = largest_singular_value(matrix);
    std::vector<double> x(static_cast<size_t>(count), 1.0), y(static_cast<size_t>(depth));
    double reached = 0;
    for (int step = 0; step < 200; ++step) {  // a power iteration never exceeds it
      const double size = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
      std::ranges::fill(y, 0);
      for (int c = 0; c < count; ++c)
        for (int d = 0; d < depth; ++d)
          y[static_cast<size_t>(d)] += matrix.column(c)[static_cast<size_t>(d)] * x[static_cast<size_t>(c)] / size;
      reached = std::sqrt(std::inner_product(y.begin(), y.end(), y.begin(), 0.0));
      for (int c = 0; c < count; ++c) x[static_cast<size_t>(c)] = std::inner_product(y.begin(), y.end(), matrix.column(c).begin(), 0.0);
    }
    EXPECT_GE(bound, reached) << count;
    const double frobenius = std::sqrt(std::inner_product(matrix.elements.begin(), matrix.elements.end(), matrix.elements.begin(), 0.0));
    EXPECT_LE(bound, 1.0001 * (count > 256 ? frobenius : reached * std::pow(count, 1.0 / 16))) << count;
  }
  EXPECT_EQ(largest_singular_value({2, 2, {0, 0, 0, 0}}), 0);
}

}  // namespace
}  // namespace serin::graph
