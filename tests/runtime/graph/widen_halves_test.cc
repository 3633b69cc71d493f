// widen_halves: which tensors of 16 bits become f32, and where they are cast. What nobody reads after it is cleaned up as in the list of passes.

#include "runtime/graph/passes/passes.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

std::string widened(std::string_view text) {
  Graph graph = graph_of(text);
  const Status status = apply(WidenHalves(), graph);
  if (!status) return status.error().message;
  EXPECT_TRUE(DeadCode().run(graph));
  return print(graph);
}

TEST(WidenHalves, CastsWhereTensorsComeInAndGoOut) {
  EXPECT_EQ(widened(R"(
    x: f16[n,4]
    h = MatMul(x, w:f16[4,8])
    y = Relu(h)
    return y
  )"),
            dedent(R"(
    x: f16[n,4]
    x.f32 = Cast(x, to=f32)
    h = MatMul(x.f32, w'[4,8])
    y = Relu(h)
    y.f16 = Cast(y, to=f16)
    return y.f16 as y
  )"));
}

TEST(WidenHalves, BrainFloatsToo) {
  EXPECT_EQ(widened("x: bf16[n,4]\ny = Softmax(x, axis=1)\nreturn y"), dedent(R"(
    x: bf16[n,4]
    x.f32 = Cast(x, to=f32)
    y = Softmax(x.f32, axis=1)
    y.bf16 = Cast(y, to=bf16)
    return y.bf16 as y
  )"));
}

TEST(WidenHalves, CastsWithinAGroupGo) {
  EXPECT_EQ(widened(R"(
    x: f16[n,4]
    mask: i64[n,4]
    a = Softmax(x, axis=1)
    b = Cast(a, to=f32)
    c = Exp(b)
    d = Cast(c, to=f16)
    m = Cast(mask, to=f16)
    l = CastLike(mask, a)
    e = Add(d, m)
    y = Mul(e, l)
    return y
  )"),
            dedent(R"(
    x: f16[n,4]
    mask: i64[n,4]
    l = Cast(mask, to=f32)
    x.f32 = Cast(x, to=f32)
    a = Softmax(x.f32, axis=1)
    c = Exp(a)
    m.f32 = Cast(mask, to=f32)
    e = Add(c, m.f32)
    y = Mul(e, l)
    y.f16 = Cast(y, to=f16)
    return y.f16 as y
  )"));
}

TEST(WidenHalves, WhatJumpsReadsWhat16BitsHold) {
  EXPECT_EQ(widened(R"(
    x: f16[n,4]
    s = Softmax(x, axis=1)
    i = Cast(s, to=i32)
    f = Floor(s)
    g = Greater(x, s)
    y = Add(f, s)
    return y, i, g
  )"),
            dedent(R"(
    x: f16[n,4]
    x.f32 = Cast(x, to=f32)
    s = Softmax(x.f32, axis=1)
    s.f16 = Cast(s, to=f16)
    i = Cast(s.f16, to=i32)
    f = Floor(s.f16)
    g = Greater(x, s.f16)
    f.f32 = Cast(f, to=f32)
    y = Add(f.f32, s)
    y.f16 = Cast(y, to=f16)
    return y.f16 as y, i, g
  )"));
}

TEST(WidenHalves, TablesStayNarrow) {
  EXPECT_EQ(widened(R"(
    ids: i64[n]
    e = Gather(table:f16[100,4], ids, axis=0)
    t = Transpose(e, perm=[1,0])
    p = MatMul(t, e)
    y = Reshape(p, i64[1]{-1})
    return y
  )"),
            dedent(R"(
    ids: i64[n]
    e = Gather(table:f16[100,4], ids, axis=0)
    t = Transpose(e, perm=[1,0])
    t.f32 = Cast(t, to=f32)
    e.f32 = Cast(e, to=f32)
    p = MatMul(t.f32, e.f32)
    y = Reshape(p, i64{-1})
    y.f16 = Cast(y, to=f16)
    return y.f16 as y
  )"));
}

TEST(WidenHalves, ScalesOfQuantisedWeights) {
  EXPECT_EQ(widened(R"(
    x: f16[n,4]
    scale: f16[1]
    w = DequantizeLinear(q:u8[4,8], s:f16[8], z:u8[8]{1,2,3,4,5,6,7,8}, axis=1)
    h = MatMul(x, w)
    y = QuantizeLinear(h, scale, zero:u8[1]{5})
    return y
  )"),
            dedent(R"(
    x: f16[n,4]
    scale: f16[1]
    w = DequantizeLinear(q:u8[4,8], s'[8], z:u8[8]{1,2,3,4,5,6,7,8}, axis=1)
    x.f32 = Cast(x, to=f32)
    h = MatMul(x.f32, w)
    h.f16 = Cast(h, to=f16)
    y = QuantizeLinear(h.f16, scale, zero:u8[1]{5})
    return y
  )"));
}

TEST(WidenHalves, LeavesWhatHasKernelsFor16Bits) {
  EXPECT_TRUE(leaves(WidenHalves(), R"(
    x: f16[n,4]
    y: f16[n,4]
    a = Add(x, y)
    b = Tanh(a)
    c = Transpose(b, perm=[1,0])
    d = Cast(c, to=f32)
    e = Softmax(d, axis=1)
    return e
  )"));
  EXPECT_TRUE(leaves(WidenHalves(), "x: f32[n,4]\na = MatMul(x, w[4,4])\ny = Cast(a, to=f16)\nreturn y"));
}

}  // namespace
}  // namespace serin::graph
