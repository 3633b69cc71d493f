// fuse_rms_norm, and fuse_gelu in its tanh spelling: before and after.

#include <gtest/gtest.h>

#include "runtime/graph/passes/passes.h"
#include "tests/graph/graphs.h"

namespace serin::graph {
namespace {

TEST(FuseRmsNorm, TakesEachSpelling) {
  const std::string fused = dedent(R"(
    x: f32[n,16]
    y = RMSNormalization(x, w[16], axis=-1, epsilon=1e-06)
    return y
  )");
  EXPECT_EQ(after(FuseRmsNorm(), R"(
    x: f32[n,16]
    square = Pow(x, f32{2})
    mean = ReduceMean(square, axes=[-1], keepdims=1)
    sum = Add(mean, f32{1e-6})
    root = Sqrt(sum)
    inverse = Reciprocal(root)
    normal = Mul(x, inverse)
    y = Mul(w[16], normal)
    return y
  )"),
            fused);
  EXPECT_EQ(after(FuseRmsNorm(), R"(
    x: f32[n,16]
    square = Mul(x, x)
    mean = ReduceMean(square, axes=[1], keepdims=1)
    sum = Add(f32{1e-6}, mean)
    root = Sqrt(sum)
    normal = Div(x, root)
    y = Mul(normal, w[16])
    return y
  )"),
            fused);
}

TEST(FuseRmsNorm, LeavesARootOfSomethingElse) {
  constexpr std::string_view kText = R"(
    x: f32[n,16]
    z: f32[n,16]
    square = Mul(z, z)
    mean = ReduceMean(square, axes=[1], keepdims=1)
    sum = Add(f32{1e-6}, mean)
    root = Sqrt(sum)
    normal = Div(x, root)
    y = Mul(normal, w[16])
    return y
  )";
  EXPECT_TRUE(leaves(FuseRmsNorm(), kText));
}

TEST(FuseGelu, TakesTheTanhSpelling) {
  const std::string fused = dedent(R"(
    x: f32[n,16]
    y = Gelu(x, approximate=tanh)
    return y
  )");
  EXPECT_EQ(after(FuseGelu(), R"(
    x: f32[n,16]
    half = Mul(x, f32{0.5})
    cube = Pow(x, f32{3})
    small = Mul(cube, f32{0.044715})
    sum = Add(x, small)
    scaled = Mul(sum, f32{0.7978846})
    t = Tanh(scaled)
    plus = Add(t, f32{1})
    y = Mul(half, plus)
    return y
  )"),
            fused);
  EXPECT_EQ(after(FuseGelu(), R"(
    x: f32[n,16]
    square = Mul(x, x)
    cube = Mul(square, x)
    small = Mul(f32{0.044715}, cube)
    sum = Add(small, x)
    scaled = Mul(f32{0.7978846}, sum)
    t = Tanh(scaled)
    plus = Add(f32{1}, t)
    twice = Mul(x, plus)
    y = Mul(twice, f32{0.5})
    return y
  )"),
            fused);
}

}  // namespace
}  // namespace serin::graph
