// The proof that padding changes nothing: what must be proven, and what must be refused with a reason that names the node.

#include "runtime/graph/paddable.h"

#include <gmock/gmock.h>

#include "tests/graph/graphs.h"

namespace serin::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Paddable proof_of(const std::string& text) {
  const Paddable proof = prove_paddable(graph_of(text), "s");
  EXPECT_EQ(proof.yes, proof.why_not.empty());
  return proof;
}

/// One head of BERT as exporters write it; `low` is what hides a key.
std::string encoder(const std::string& low, const std::string& end) {
  return R"(
    ids: i64[n,s]
    mask: i64[n,s]
    wide = Unsqueeze(mask, axes=[1])
    seen = Cast(wide, to=f32)
    hidden = Sub(1.0, seen)
    bias = Mul(hidden, )" +
         low + R"()
    e = Gather(words[30,8], ids)
    h = LayerNormalization(e, g[8], b[8])
    q = MatMul(h, wq[8,8])
    k = MatMul(h, wk[8,8])
    v = MatMul(h, wv[8,8])
    kt = Transpose(k, perm=[0,2,1])
    products = MatMul(q, kt)
    scaled = Div(products, 2.8)
    scores = Add(scaled, bias)
    p = Softmax(scores)
    y = MatMul(p, v)
    z = Add(y, h)
  )" + end;
}
const char* const kLow = "-3.4e38";

TEST(Paddable, AnEncoderWhoseMaskHidesThePadding) {
  const Paddable proof = proof_of(encoder(kLow, "return z\n"));
  EXPECT_TRUE(proof.yes) << proof.why_not;
  EXPECT_THAT(proof.masks, ElementsAre(1));
}

TEST(Paddable, AMaskThatIsLowButNotLowEnough) {
  EXPECT_THAT(proof_of(encoder("-10000.0", "return z\n")).why_not, HasSubstr("node 'p' (Softmax) shares with what is behind the end"));
}

TEST(Paddable, AMaskThatIsZeroWhereElementsCount) {
  std::string turned = encoder(kLow, "return z\n");
  turned.replace(turned.find("Sub(1.0, seen)"), 14, "Identity(seen)");
  EXPECT_THAT(proof_of(turned).why_not, HasSubstr("node 'p' (Softmax) shares with"));
}

/// With the mask's own arithmetic: `gone`, 1 behind the end and 0 before it in i64, becomes the condition `hide`.
std::string hidden_by(const std::string& arithmetic) {
  std::string text = encoder(kLow, "return z\n");
  const size_t from = text.find("wide ="), to = text.find("e = Gather");
  return text.replace(from, to - from,
                      "wide = Unsqueeze(mask, axes=[1])\n    gone = Sub(i64[]{1}, wide)\n    real = Cast(gone, to=f32)\n    " + arithmetic +
                          "\n    bias = Where(hide, f32[]{-3.4e38}, 0.0)\n    ");
}

TEST(Paddable, IntegersAreTruncated) {
  EXPECT_EQ(proof_of(hidden_by("hide = Greater(gone, i64[]{0})")).why_not, "");
  EXPECT_EQ(
      proof_of(hidden_by("scaled_up = Mul(real, 1.6)\n    whole = Cast(scaled_up, to=i64)\n    hide = Equal(whole, i64[]{1})")).why_not,
      "");
  EXPECT_FALSE(proof_of(hidden_by("part = Mul(real, 0.6)\n    whole = Cast(part, to=i64)\n    hide = Greater(whole, i64[]{0})")).yes);
  EXPECT_EQ(proof_of(hidden_by("twice = Mul(gone, i64[]{4})\n    half = Div(twice, i64[]{3})\n    hide = Equal(half, i64[]{1})")).why_not,
            "");
  EXPECT_FALSE(proof_of(hidden_by("half = Div(gone, i64[]{2})\n    hide = Greater(half, i64[]{0})")).yes);
}

TEST(Paddable, NumbersAreThoseOfTheirType) {
  EXPECT_EQ(proof_of(hidden_by("two = Mul(gone, i64[]{2})\n    hide = Cast(two, to=bool)")).why_not, "");
  EXPECT_FALSE(
      proof_of(hidden_by(
                   "two = Mul(gone, i64[]{2})\n    is = Cast(two, to=bool)\n    one = Cast(is, to=i64)\n    hide = Greater(one, i64[]{1})"))
          .yes)
      << "true is 1";
  EXPECT_FALSE(proof_of(hidden_by("byte = Cast(gone, to=u8)\n    less = Sub(u8[]{0}, byte)\n    hide = Less(less, u8[]{0})")).yes)
      << "wraps";
  EXPECT_FALSE(proof_of(hidden_by("large = Add(real, 1e8)\n    hide = Greater(large, 1e8)")).yes) << "1e8 + 1 is 1e8";
  EXPECT_EQ(proof_of(hidden_by("large = Add(real, 1e6)\n    hide = Greater(large, 1e6)")).why_not, "");
}

TEST(Paddable, PoolingByTheMaskByTheFirstAndByTheLength) {
  const std::string counted = R"(
    column = Unsqueeze(mask, axes=[2])
    count = Cast(column, to=f32)
    kept = Mul(z, count)
    sum = ReduceSum(kept, axes=[1], keepdims=0)
    rows = ReduceSum(count, axes=[1], keepdims=0)
    mean = Div(sum, rows)
    return mean
  )";
  EXPECT_EQ(proof_of(encoder(kLow, counted)).why_not, "");
  EXPECT_EQ(proof_of(encoder(kLow, "first = Gather(z, i64[]{0}, axis=1)\nreturn first\n")).why_not, "");
  EXPECT_THAT(proof_of(encoder(kLow, "last = Gather(z, i64[]{-1}, axis=1)\nreturn last\n")).why_not, HasSubstr("that need not be there"));
  EXPECT_THAT(proof_of(encoder(kLow, "mean = ReduceMean(z, axes=[1])\nreturn mean\n")).why_not,
              HasSubstr("node 'mean' (ReduceMean) divides by the length"));
  EXPECT_THAT(proof_of(encoder(kLow, "all = ReduceSum(z, axes=[1])\nreturn all\n")).why_not, HasSubstr("takes in what is behind the end"));
  EXPECT_THAT(proof_of(encoder(kLow, "most = ReduceMax(z, axes=[1])\nreturn most\n")).why_not,
              HasSubstr("takes in what is behind the end"));
}

TEST(Paddable, WhatADivisionLeavesMayNotBeMultipliedAway) {
  const std::string wild = R"(
    one = Div(z, z)
    column = Unsqueeze(mask, axes=[2])
    count = Cast(column, to=f32)
    kept = Mul(one, count)
    sum = ReduceSum(kept, axes=[1])
    return sum
  )";
  EXPECT_THAT(proof_of(encoder(kLow, wild)).why_not, HasSubstr("node 'sum' (ReduceSum) takes in"));
}

TEST(Paddable, FusedAttentionNeedsAMaskOrToLookBackOnly) {
  const std::string operands = "q: f32[n,2,s,8]\nk: f32[n,2,s,8]\nv: f32[n,2,s,8]\n";
  EXPECT_THAT(proof_of(operands + "y = Attention(q, k, v)\nreturn y\n").why_not, HasSubstr("nothing masks it"));
  EXPECT_EQ(proof_of(operands + "y = Attention(q, k, v, is_causal=1)\nreturn y\n").why_not, "");
  const std::string mask = "m: i64[n,s]\nb = Cast(m, to=bool)\nu = Unsqueeze(b, axes=[1,2])\ny = Attention(q, k, v, u)\nreturn y\n";
  const Paddable masked = proof_of(operands + mask);
  EXPECT_EQ(masked.why_not, "");
  EXPECT_THAT(masked.masks, ElementsAre(3));
}

TEST(Paddable, AnyNumberOfElementsOneByOne) {
  EXPECT_EQ(proof_of("x: f32[n,s,4]\na = MatMul(x, w[4,4])\nb = Gelu(a)\nc = Softmax(b)\nreturn c\n").why_not, "");
  EXPECT_EQ(proof_of("x: f32[n,s,4]\nt = Transpose(x, perm=[1,0,2])\nr = Reshape(t, i64{0,0,2,2})\nreturn r\n").why_not, "");
  EXPECT_EQ(proof_of("x: f32[n,s]\nc = CumSum(x, i64[]{1})\nreturn c\n").why_not, "");
}

TEST(Paddable, WhatIsRefused) {
  const auto why_not = [](const std::string& rest) { return proof_of("x: f32[n,s,4]\n" + rest).why_not; };
  EXPECT_THAT(why_not("y = Softmax(x, axis=1)\nreturn y\n"), HasSubstr("nothing masks it"));
  EXPECT_THAT(why_not("y = Flatten(x, axis=1)\nreturn y\n"), HasSubstr("'s'"));
  EXPECT_THAT(why_not("y = Reshape(x, i64{-1,4})\nreturn y\n"), HasSubstr("'s'"));
  EXPECT_THAT(why_not("y = Concat(x, x, axis=1)\nreturn y\n"), HasSubstr("works along 's'"));
  EXPECT_THAT(why_not("t = Transpose(x, perm=[0,2,1])\ny = Conv(t, w[4,4,3], pads=[1,1])\nreturn y\n"),
              HasSubstr("node 'y' (Conv) is not known"));
  EXPECT_THAT(why_not("n = Shape(x)\nl = Gather(n, i64[]{1})\nf = Cast(l, to=f32)\ny = Div(x, f)\nreturn y\n"),
              HasSubstr("computes with the length"));
  EXPECT_THAT(why_not("a = Add(x, 1.0)\nt = Transpose(a, perm=[0,2,1])\ny = MatMul(a, t)\nz = MatMul(y, a)\nreturn z\n"),
              HasSubstr("adds up along 's' what is not masked"));
  EXPECT_THAT(why_not("q, qs, qz = DynamicQuantizeLinear(x)\nreturn q\n"), HasSubstr("is not known"));
  EXPECT_THAT(proof_of("x: f32[n,s,s]\nreturn x\n").why_not, HasSubstr("on two axes"));
}

TEST(Paddable, TablesThatHidePositionsAreNotTakenForFinite) {
  const std::string text = encoder(kLow, "return z\n");
  std::string hidden = text;
  hidden.replace(hidden.find("scores = Add(scaled, bias)"), 26, "table = Add(bias, f32[1]{-1e38})\n    scores = Add(scaled, table)");
  EXPECT_FALSE(proof_of(hidden).yes);
}

}  // namespace
}  // namespace serin::graph
