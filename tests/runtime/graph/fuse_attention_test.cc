// fuse_attention, before and after: each spelling of attention that an exporter writes.

#include <gtest/gtest.h>

#include "runtime/graph/passes/passes.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

TEST(FuseAttention, TakesTorchsSpellingWithItsGuard) {  // scale on both sides, k transposed by one permutation
  EXPECT_EQ(after(FuseAttention(), R"(
    q: f32[n,s,2,8]
    k: f32[n,t,2,8]
    v: f32[n,2,t,4]
    seen: bool[n,1,s,t]
    qt = Transpose(q, perm=[0,2,1,3])
    qs = Mul(qt, f32{0.5})
    kt = Transpose(k, perm=[0,2,3,1])
    ks = Mul(kt, f32{0.5})
    qk = MatMul(qs, ks)
    mask = Where(seen, f32{0}, f32{-inf})
    masked = Add(qk, mask)
    p = Softmax(masked, axis=-1)
    bad = IsNaN(p)
    safe = Where(bad, f32{0}, p)
    pv = MatMul(safe, v)
    y = Transpose(pv, perm=[0,2,1,3])
    return y
  )"),
            dedent(R"(
    q: f32[n,s,2,8]
    k: f32[n,t,2,8]
    v: f32[n,2,t,4]
    seen: bool[n,1,s,t]
    qt = Transpose(q, perm=[0,2,1,3])
    kt' = Transpose(k, perm=[0,2,1,3])
    y = Attention(qt, kt', v, seen, heads_inside=1, masked_to_zero=1, scale=0.25)
    return y
  )"));
}

TEST(FuseAttention, TakesBertsSpelling) {  // divided afterwards, a mask that is added
  EXPECT_EQ(after(FuseAttention(), R"(
    q: f32[n,2,s,8]
    k: f32[n,2,t,8]
    v: f32[n,2,t,8]
    mask: f32[n,1,1,t]
    kt = Transpose(k, perm=[0,1,3,2])
    qk = MatMul(q, kt)
    scaled = Div(qk, f32{4})
    masked = Add(scaled, mask)
    p = Softmax(masked, axis=3)
    y = MatMul(p, v)
    return y
  )"),
            dedent(R"(
    q: f32[n,2,s,8]
    k: f32[n,2,t,8]
    v: f32[n,2,t,8]
    mask: f32[n,1,1,t]
    y = Attention(q, k, v, mask, scale=0.25)
    return y
  )"));
}

TEST(FuseAttention, TakesChosenScoresAndABias) {  // GPT-2's causal Where, T5's position bias on the other side of the sum
  const std::string text = after(FuseAttention(), R"(
    q: f32[n,2,s,8]
    kt: f32[n,2,8,t]
    v: f32[n,2,t,8]
    bias: f32[1,2,s,t]
    causal: bool[1,1,s,t]
    k = Transpose(kt, perm=[0,1,3,2])
    qk = FusedMatMul(q, k, transB=1)
    chosen = Where(causal, qk, f32{-3e38})
    biased = Add(bias, chosen)
    p = Softmax(biased, axis=-1)
    y = MatMul(p, v)
    return y
  )");
  EXPECT_NE(text.find("Attention(q, k, v, "), std::string::npos) << text;
  EXPECT_EQ(text.find("Softmax"), std::string::npos) << text;
  EXPECT_NE(text.find("Where(causal, "), std::string::npos) << text;
}

TEST(FuseAttention, TakesTheDetourOverThreeAxes) {  // torch.onnx's dynamo exporter transposes k this way
  const std::string text = after(FuseAttention(), R"(
    q: f32[n,2,s,8]
    k: f32[n,2,t,8]
    v: f32[n,2,t,8]
    three: i64[3]
    shape = Shape(k)
    n = Slice(shape, starts=[0], ends=[2], axes=[0], steps=[1])
    t = Slice(shape, starts=[2], ends=[3], axes=[0], steps=[1])
    flat_shape = Concat(i64[1]{-1}, t, i64[1]{8}, axis=0)
    flat = Reshape(k, flat_shape)
    turned = Transpose(flat, perm=[0,2,1])
    back_shape = Concat(n, i64[1]{8}, t, axis=0)
    kt = Reshape(turned, back_shape)
    qk = MatMul(q, kt)
    p = Softmax(qk, axis=-1)
    y = MatMul(p, v)
    return y
  )");
  EXPECT_NE(text.find("y = Attention(q, k, v, scale=1.0)"), std::string::npos) << text;
}

/// Swin's attention of 4 windows an image, with a mask and the sizes by which they are told apart.
std::string windows(const std::string& mask, const std::string& sizes) {
  return after(FuseAttention(), R"(
    image: f32[n,8]
    q: f32[4*n,2,9,8]
    k: f32[4*n,2,9,8]
    v: f32[4*n,2,9,8]
    bias: f32[1,2,9,9]
    mask: f32)" + mask + R"(
    shape = Shape(image)
    images = Slice(shape, starts=[0], ends=[1], axes=[0], steps=[1])
    sizes = Concat()" + sizes + R"(, axis=0)
    kt = Transpose(k, perm=[0,1,3,2])
    qk = MatMul(q, kt)
    biased = Add(qk, bias)
    apart = Reshape(biased, sizes)
    masked = Add(apart, mask)
    joined = Reshape(masked, i64[4]{-1,2,9,9})
    p = Softmax(joined, axis=-1)
    y = MatMul(p, v)
    return y
  )");
}

TEST(FuseAttention, RepeatsAMaskOfWindowsForEachImage) {
  const std::string text = windows("[1,4,1,9,9]", "images, i64[4]{4,2,9,9}");
  EXPECT_EQ(text.find("Softmax"), std::string::npos) << text;
  const auto sum = text.find("Add(mask, bias)"), all = text.find("Expand("), rows = text.find("Reshape("),
             fused = text.find("Attention(q, k, v, ");
  EXPECT_TRUE(sum < all && all < rows && rows < fused && fused != std::string::npos) << text;
}

TEST(FuseAttention, LeavesMasksOfWindowsThatItCannotRepeat) {
  const char* const cases[][2] = {{"[n,4,1,9,9]", "images, i64[4]{4,2,9,9}"},      // of each image
                                  {"[1,4,1,9,1]", "images, i64[4]{4,2,9,9}"},      // the same for all keys
                                  {"[1,4,1,9,9]", "i64[1]{-1}, i64[4]{4,2,9,9}"},  // Expand takes no -1
                                  {"[4,1,9,9]", "images, i64[4]{4,2,9,9}"}};
  for (const auto& [mask, sizes] : cases) EXPECT_NE(windows(mask, sizes).find("Softmax"), std::string::npos) << mask << " " << sizes;
}

TEST(FuseAttention, ScalesTheQueriesOfEachHead) {  // Swin v2
  const auto fused = [](const std::string& factor) {
    return after(FuseAttention(), R"(
    q: f32[n,2,9,8]
    k: f32[n,2,9,8]
    v: f32[n,2,9,8]
    bias: f32[1,2,9,9]
    factor: f32)" + factor + R"(
    kt = Transpose(k, perm=[0,1,3,2])
    qk = MatMul(q, kt)
    scaled = Mul(qk, factor)
    biased = Add(scaled, bias)
    p = Softmax(biased, axis=-1)
    y = MatMul(p, v)
    return y
  )");
  };
  for (const std::string factor : {"[2,1,1]", "[1,2,1,1]"}) {
    const std::string text = fused(factor);
    EXPECT_NE(text.find("Mul(q, factor)"), std::string::npos) << text;
    EXPECT_NE(text.find(", bias, scale=1.0)"), std::string::npos) << text;
  }
  for (const std::string factor : {"[9,1]", "[2,1,9]", "[n,2,1,1]"}) EXPECT_NE(fused(factor).find("Softmax"), std::string::npos) << factor;
}

TEST(FuseAttention, ReadsRepeatedHeadsOnce) {
  const std::string text = after(FuseAttention(), R"(
    q: f32[n,4,s,8]
    k: f32[n,2,t,8]
    v: f32[n,2,t,8]
    shape = Shape(k)
    n = Slice(shape, starts=[0], ends=[1], axes=[0], steps=[1])
    t = Slice(shape, starts=[2], ends=[3], axes=[0], steps=[1])
    wide = Concat(n, i64[2]{2,2}, t, i64[1]{8}, axis=0)
    joined = Concat(n, i64[1]{4}, t, i64[1]{8}, axis=0)
    k5 = Unsqueeze(k, axes=[2])
    kw = Expand(k5, wide)
    kr = Reshape(kw, joined)
    v5 = Unsqueeze(v, axes=[2])
    vw = Expand(v5, wide)
    vr = Reshape(vw, joined)
    kt = Transpose(kr, perm=[0,1,3,2])
    qk = MatMul(q, kt)
    p = Softmax(qk, axis=-1)
    y = MatMul(p, vr)
    return y
  )");
  EXPECT_NE(text.find("y = Attention(q, k, v, scale=1.0)"), std::string::npos) << text;
}

TEST(FuseAttention, LeavesWhatIsSomethingElse) {
  EXPECT_TRUE(leaves(FuseAttention(), R"(
    q: f32[n,2,s,8]
    k: f32[n,2,8,t]
    v: f32[n,2,t,8]
    qk = MatMul(q, k)
    p = Softmax(qk, axis=2)
    y = MatMul(p, v)
    return y
  )")) << "a softmax over the queries";
  EXPECT_TRUE(leaves(FuseAttention(), R"(
    q: f32[n,2,s,8]
    k: f32[n,2,t,8]
    v: f32[n,2,t,8]
    kt = Transpose(k, perm=[0,1,3,2])
    qk = MatMul(q, kt)
    p = Softmax(qk, axis=-1)
    y = MatMul(p, v)
    return y, p
  )")) << "weights that somebody else reads";
  EXPECT_TRUE(leaves(FuseAttention(), R"(
    q: f32[n,2,s,8]
    k: f32[n,2,t,8]
    v: f32[n,2,t,8]
    mask: f32[n,1,s,1]
    kt = Transpose(k, perm=[0,1,3,2])
    qk = MatMul(q, kt)
    masked = Add(qk, mask)
    p = Softmax(masked, axis=-1)
    y = MatMul(p, v)
    return y
  )")) << "a mask without an axis of keys";
}

}  // namespace
}  // namespace serin::graph
