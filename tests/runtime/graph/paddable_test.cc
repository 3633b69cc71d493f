// The proof that padding changes nothing: what must be proven, and what must be refused with a reason that names the node.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/runtime/graph/paddable_proof.h"

namespace serin::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

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

/// The same with something else instead of a line.
std::string encoder_with(const std::string& low, const std::string& name, const std::string& lines) {
  std::string text = encoder(low, "return z\n");
  const size_t from = text.find("\n    " + name + " = ") + 1, to = text.find('\n', from);
  return text.replace(from, to - from, lines);
}

TEST(Paddable, AMaskThatIsLowerThanScoresCanBe) {
  const Paddable proof = proof_of(encoder("-10000.0", "return z\n"));
  EXPECT_EQ(proof.why_not, "");
  EXPECT_THAT(proof.masks, ElementsAre(1));
  EXPECT_EQ(proof_of(encoder_with("20000.0", "bias", "    bias = Mul(seen, 20000.0)")).why_not, "") << "high where elements count";
  EXPECT_EQ(proof_of(encoder_with("0.0", "scores", "    there = Cast(wide, to=bool)\n    scores = Where(there, scaled, f32[]{-10000.0})"))
                .why_not,
            "");
}

TEST(Paddable, AMaskThatIsLowButNotLowEnough) {
  EXPECT_THAT(proof_of(encoder("-100.0", "return z\n")).why_not,
              MatchesRegex("node 'p' \\(Softmax\\) shares with what is behind the end: scores may reach [0-9.]+, the mask is -100"));
  const std::string there = "    there = Cast(wide, to=bool)\n";
  EXPECT_THAT(proof_of(encoder_with("0.0", "scores", there + "    scores = Where(there, scaled, f32[]{-100.0})")).why_not,
              HasSubstr("scores may reach"));
  EXPECT_THAT(proof_of(encoder_with("0.0", "scores", there + "    scores = Where(there, scaled, f32[]{-1.0})")).why_not,
              HasSubstr("the mask is -1"));
  EXPECT_THAT(proof_of(encoder_with("0.0", "bias", "    bias = Mul(hidden, 10000.0)")).why_not, HasSubstr("nothing masks it"));
}

TEST(Paddable, AScoreMayBeHighBehindTheEndAndLowWhereElementsCount) {
  const auto masked = [](double low) {
    return proof_of(encoder_with(fmt::format("f32[]{{-{:.1f}}}", low), "scaled", "    scaled = Mul(products, 30.0)"));
  };
  const std::string why_not = masked(1).why_not;
  const double reach = std::stod(why_not.substr(why_not.find("reach ") + 6));
  EXPECT_GT(reach, 500);
  EXPECT_FALSE(masked(1.9 * reach).yes);
  EXPECT_FALSE(masked(2 * reach + 90).yes) << "e^-90 is not 0";
  EXPECT_TRUE(masked(2.2 * reach + 130).yes);
}

TEST(Paddable, ScoresThatMayReachTheMask) {
  const auto why_not = [](const std::string& name, const std::string& lines) {
    return proof_of(encoder_with("-10000.0", name, lines)).why_not;
  };
  EXPECT_THAT(why_not("scaled", "    scaled = Mul(products, 1000.0)"), HasSubstr("scores may reach"));
  EXPECT_THAT(why_not("q", "    large = Mul(h, 1000.0)\n    q = MatMul(large, wq[8,8])"), HasSubstr("scores may reach"));
  EXPECT_THAT(why_not("h", "    h = LayerNormalization(e, g:f32[8]{1e6,1,1,1,1,1,1,1}, b[8])"), HasSubstr("scores may reach"));
  EXPECT_THAT(why_not("h", "    h = LayerNormalization(e, g:f32[8]{nan,1,1,1,1,1,1,1}, b[8])"),
              HasSubstr("scores may be of any size, the mask is -10000"));
  EXPECT_THAT(why_not("k", "    k = FusedMatMul(h, wk[8,8], c:f32[8]{inf,0,0,0,0,0,0,0})"), HasSubstr("scores may be of any size"));
  EXPECT_THAT(why_not("k", "    far = Exp(h)\n    k = MatMul(far, wk[8,8])"), HasSubstr("nothing masks it")) << "it may be infinite";
  EXPECT_EQ(why_not("h", "    h = Identity(e)"), "") << "tables are bounded, too";
  EXPECT_THAT(
      proof_of("m: f32[n,s]\nx: f32[n,s,8]\nwide = Unsqueeze(m, axes=[1])\nhidden = Sub(1.0, wide)\nbias = Mul(hidden, f32[]{-10000.0})\n"
               "products = FusedMatMul(x, x, transB=1)\nscores = Add(products, bias)\np = Softmax(scores)\ny = MatMul(p, x)\nreturn y\n")
          .why_not,
      HasSubstr("scores may be of any size, the mask is -10000"));
}

TEST(Paddable, WhatIsAddedToTheMaskCounts) {
  const auto why_not = [](const std::string& added) {
    return proof_of(encoder_with("-10000.0", "scores", "    both = Add(bias, " + added + ")\n    scores = Add(scaled, both)")).why_not;
  };
  EXPECT_EQ(why_not("table[8,1,1]"), "");
  EXPECT_EQ(why_not("f32[1]{-20000.0}"), "") << "to all of them";
  EXPECT_THAT(why_not("table:f32[2,1,1]{0,6000}"), HasSubstr("scores may reach 6"));
  EXPECT_EQ(why_not("bias"), "");
}

TEST(Paddable, WhereElementsCountTheMaskIsOnlyWhatIsKnown) {
  // Behind the end -10000; where elements count what another input says, which may be lower still.
  const std::string other =
      encoder_with("0.0", "bias",
                   "    there = Cast(wide, to=bool)\n    any = ReduceMax(x, axes=[2], keepdims=0)\n    row = Unsqueeze(any, axes=[1])\n"
                   "    either = Where(there, row, f32[]{-10000.0})\n    bias = Identity(either)");
  EXPECT_THAT(proof_of("    x: f32[n,s,4]" + other).why_not,
              HasSubstr("node 'p' (Softmax) shares with what is behind the end: nothing masks it"));
  // Behind the end 0, elsewhere 0 to 1: what a softmax has answered is no number.
  EXPECT_THAT(proof_of("m: f32[n,s]\nhidden = Sub(1.0, m)\nlow = Mul(hidden, -3.4e38)\nshare = Softmax(low)\nbias = Mul(share, 10000.0)\n"
                       "p = Softmax(bias)\nreturn p\n")
                  .why_not,
              HasSubstr("nothing masks it"));
}

TEST(Paddable, AMaskJoinedWithWhatIsAlwaysTrue) {
  const auto joined = [](const std::string& first, const std::string& compared, const std::string& before = "") {
    return proof_of("q: f32[n,2,s,8]\nm: i64[n,s]\nshape = Shape(m)\nl = Gather(shape, i64[]{1})\nat = Range(i64[]{" + first +
                    "}, l, i64[]{1})\n"
                    "row = Unsqueeze(at, axes=[0,1,3])\n" +
                    before + "is = " + compared +
                    "\nthere = And(true:bool[]{1}, is)\nb = Cast(m, to=bool)\n"
                    "u = Unsqueeze(b, axes=[1,2])\nseen = And(there, u)\ny = Attention(q, q, q, seen)\nreturn y\n")
        .why_not;
  };
  EXPECT_EQ(joined("0", "GreaterOrEqual(row, i64[]{0})"), "");
  EXPECT_EQ(joined("0", "Less(i64[]{-1}, row)"), "");
  EXPECT_EQ(joined("0", "Not(below)", "below = Less(row, i64[]{0})\n"), "") << "as opset 11 says it";
  EXPECT_THAT(joined("-1", "GreaterOrEqual(row, i64[]{0})"), HasSubstr("has a mask that is not known"));
  EXPECT_THAT(joined("0", "GreaterOrEqual(row, i64[]{1})"), HasSubstr("has a mask that is not known"));
  EXPECT_THAT(joined("0", "Less(row, i64[]{100})"), HasSubstr("has a mask that is not known"));
  EXPECT_THAT(joined("0", "Not(below)", "below = Less(row, i64[]{1})\n"), HasSubstr("has a mask that is not known"));
  EXPECT_THAT(joined("0", "Less(row, i64[]{0})"), HasSubstr("has a mask that is not known")) << "nothing is seen at all";
  EXPECT_THAT(joined("0", "Greater(row, i64[]{0})"), HasSubstr("has a mask that is not known"));
}

TEST(Paddable, AMaskJoinedWithWhatIsTrueOfQueriesOfAnotherLength) {  // as a decoder looks at an encoder
  const auto why_not = [](const std::string& first) {
    return proof_of("q: f32[n,2,t,8]\nk: f32[n,2,s,8]\nm: i64[n,s]\nshape = Shape(q)\nl = Gather(shape, i64[]{2})\nat = Range(i64[]{" +
                    first +
                    "}, l, i64[]{1})\nrow = Unsqueeze(at, axes=[0,1,3])\nthere = GreaterOrEqual(row, i64[]{0})\nb = Cast(m, to=bool)\n"
                    "u = Unsqueeze(b, axes=[1,2])\nseen = And(there, u)\ny = Attention(q, k, k, seen)\nreturn y\n")
        .why_not;
  };
  EXPECT_EQ(why_not("0"), "");
  EXPECT_THAT(why_not("-1"), HasSubstr("has a mask that is not known"));
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

TEST(Paddable, FusedAttentionOfHeads) {
  const auto why_not = [](const std::string& low, const std::string& scale) {
    return proof_of(
               "x: f32[n,s,8]\nm: f32[n,s]\nu = LayerNormalization(x, g[8], b[8])\na = MatMul(u, w[8,8])\nh = Reshape(a, i64{0,0,2,4})\n"
               "q = Transpose(h, perm=[0,2,1,3])\nwide = Unsqueeze(m, axes=[1,2])\nhidden = Sub(1.0, wide)\nbias = Mul(hidden, f32[]{" +
               low +
               "})\n"
               "y = Attention(q, q, q, bias" +
               scale + ")\nreturn y\n")
        .why_not;
  };
  EXPECT_EQ(why_not("-10000.0", ""), "");
  EXPECT_EQ(why_not("-1e9", ", scale=50.0"), "");
  EXPECT_THAT(why_not("-10000.0", ", scale=1000.0"),
              HasSubstr("node 'y' (Attention) has a mask that is not known to leave nothing of what is behind the end: scores may reach"));
  EXPECT_THAT(why_not("-1e9", ", scale=10000.0"), HasSubstr("the mask is -65504")) << "as an f16 holds it";
  EXPECT_THAT(
      proof_of("q: f32[n,2,s,8]\nm: f32[n,s]\nwide = Unsqueeze(m, axes=[1,2])\nhidden = Sub(1.0, wide)\nbias = Mul(hidden, -10000.0)\n"
               "y = Attention(q, q, q, bias)\nreturn y\n")
          .why_not,
      HasSubstr("scores may be of any size, the mask is -10000"));
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
