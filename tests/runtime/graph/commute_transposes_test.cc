// commute_transposes, before and after.

#include <gtest/gtest.h>

#include "runtime/graph/passes/passes.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

TEST(CommuteTransposes, LeavesTheBatchFirstBehindAttention) {
  EXPECT_EQ(after(CommuteTransposes(), R"(
    q: f32[n,2,s,8]
    k: f32[n,2,s,8]
    v: f32[n,2,s,8]
    y = Attention(q, k, v)
    turned = Transpose(y, perm=[2,0,1,3])
    flat = Reshape(turned, i64{-1,16})
    p = FusedMatMul(flat, w[16,16], b[16])
    shape = Shape(turned)
    first = Slice(shape, starts=[0], ends=[2], axes=[0], steps=[1])
    rows = Concat(first, i64[1]{16}, axis=0)
    wide = Reshape(p, rows)
    z = Transpose(wide, perm=[1,0,2])
    return z
  )")
                .find("heads_inside"),
            std::string::npos)
      << "somebody else reads the turned heads";
  const std::string text = after(CommuteTransposes(), R"(
    q: f32[n,2,5,8]
    k: f32[n,2,5,8]
    v: f32[n,2,5,8]
    y = Attention(q, k, v)
    turned = Transpose(y, perm=[2,0,1,3])
    flat = Reshape(turned, i64{-1,16})
    p = FusedMatMul(flat, w[16,16], b[16])
    wide = Reshape(p, i64{5,-1,16})
    z = Transpose(wide, perm=[1,0,2])
    return z
  )");
  EXPECT_NE(text.find("Attention(q, k, v, heads_inside=1)"), std::string::npos) << text;
  EXPECT_EQ(text.find("Transpose"), std::string::npos) << text;
  EXPECT_NE(text.find("i64[3]{0,0,16}"), std::string::npos) << text;
}

TEST(CommuteTransposes, MultipliesBeforeItTurnsForAttention) {
  const std::string text = after(CommuteTransposes(), R"(
    x: f32[n,5,16]
    turned = Transpose(x, perm=[1,0,2])
    p = FusedMatMul(turned, w[16,16], b[16])
    heads = Reshape(p, i64{5,-1,2,8})
    q = Transpose(heads, perm=[1,2,0,3])
    y = Attention(q, q, q)
    return y
  )");
  EXPECT_LT(text.find("FusedMatMul(x, "), text.find("Transpose(")) << text;
}

TEST(CommuteTransposes, LeavesProductsWhoseRowsAreNotAlone) {
  EXPECT_TRUE(leaves(CommuteTransposes(), R"(
    x: f32[n,5,16]
    turned = Transpose(x, perm=[1,0,2])
    p = FusedMatMul(turned, w[16,16], b[16])
    y = Softmax(p, axis=0)
    return y
  )")) << "read by more than attention";
  EXPECT_TRUE(leaves(CommuteTransposes(), R"(
    x: f32[n,5,16]
    w: f32[16,16]
    turned = Transpose(x, perm=[1,0,2])
    p = MatMul(turned, w)
    y = Transpose(p, perm=[1,0,2])
    return y
  )")) << "a matrix that is computed could be one for each batch";
}

}  // namespace
}  // namespace serin::graph
