// fuse_rms_norm, softmax_of_rows, unflatten_rows, and fuse_gelu in its tanh spelling: before and after.

#include <gtest/gtest.h>

#include "runtime/graph/passes/passes.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

TEST(SoftmaxOfRows, IsTheSoftmaxOfTheLastAxis) {
  const auto text = [](const std::string& op, const std::string& flat, const std::string& back) {
    return "x: f32[n,2,s,s]\nd = Shape(x)\nr = Flatten(x, axis=" + flat + ")\np = " + op + "(r, axis=-1)\ny = Reshape(p, " + back +
           ")\nreturn y\n";
  };
  for (const std::string op : {"Softmax", "LogSoftmax"}) {
    const std::string unfolded = "x: f32[n,2,s,s]\nd = Shape(x)\ny = " + op + "(x, axis=-1)\nreturn y\n";
    EXPECT_EQ(after(SoftmaxOfRows(), text(op, "3", "d")), unfolded);
    EXPECT_EQ(after(SoftmaxOfRows(), text(op, "-1", "d")), unfolded);
  }
  EXPECT_TRUE(leaves(SoftmaxOfRows(), text("Softmax", "2", "d"))) << "of two axes at once";
  EXPECT_TRUE(leaves(SoftmaxOfRows(), text("Softmax", "3", "i64{-1,8}"))) << "another shape";
  EXPECT_TRUE(leaves(SoftmaxOfRows(), "x: f32[4,5]\nr = Flatten(x, axis=1)\np = Softmax(r, axis=0)\ny = Reshape(p, i64{4,5})\nreturn y\n"));
  EXPECT_TRUE(
      leaves(SoftmaxOfRows(), "x: f32[4,5]\nr = Flatten(x, axis=1)\np = Softmax(r)\ny = Reshape(p, i64{4,5})\nz = Add(p, y)\nreturn z\n"));
}

TEST(UnflattenRows, AProductTakesMoreAxesThanRows) {
  const auto text = [](const std::string& weight, const std::string& shape, const std::string& more) {
    return "x: f32[10,4*batch,8]\nb: i64[batch]\nsize = Shape(b)\nrows = Reshape(x, i64{-1,32})\np = MatMul(rows, " + weight +
           ")\nshape = Concat(i64{10}, size, " + shape + ", axis=0)\ny = Reshape(p, shape)\nreturn y" + more + "\n";
  };
  const std::string square = text("w[32,32]", "i64{32}", ""), made = after(UnflattenRows(), square);
  EXPECT_THAT(made, ::testing::HasSubstr("p+y = Reshape(x, shape)")) << made;
  EXPECT_THAT(made, ::testing::HasSubstr("y = MatMul(p+y, w[32,32])")) << made;
  EXPECT_TRUE(leaves(UnflattenRows(), text("w[32,64]", "i64{64}", ""))) << "other columns";
  EXPECT_TRUE(leaves(UnflattenRows(), text("w[32,32]", "i64{4,8}", ""))) << "cuts the rows";
  EXPECT_TRUE(leaves(UnflattenRows(), text("w[32,32]", "i64{32}", ", p"))) << "the rows are read elsewhere";
}

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
