// Rows that nobody sent, and rows of a mask in which nothing counts: NaN and the lowest numbers must not reach what is answered.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/runtime/graph/paddable_proof.h"

namespace serin::graph {
namespace {

using testing::HasSubstr;

TEST(PaddableRows, QueriesBehindTheEndMayBeNan) {
  const auto why_not = [](const std::string& query, const std::string& mask) {
    return proof_of(
               "x: f32[n,s,4]\nm: f32[n,s]\nmq = Unsqueeze(m, axes=[1,3])\nbq = Cast(mq, to=bool)\nmk = Unsqueeze(m, axes=[1,2])\n"
               "bk = Cast(mk, to=bool)\n" +
               query + "q = Unsqueeze(d, axes=[1])\nk = Unsqueeze(x, axes=[1])\n" + mask +
               "y = Attention(q, k, k, mask)\nrows = Squeeze(y, axes=[1])\n" + kPooled)
        .why_not;
  };
  const std::string plain = "d = Identity(x)\n", keys = "mask = Identity(bk)\n";
  const auto is_pooled = HasSubstr("node 'sum' (ReduceSum) takes in what is behind the end");
  EXPECT_EQ(why_not(plain, keys), "");
  EXPECT_THAT(why_not("l = ReduceL2(x, axes=[2])\nd = Div(x, l)\n", keys), is_pooled) << "0 / 0";
  EXPECT_THAT(why_not(plain, "rest = Where(bq, 0.0, -inf)\nlow = Where(bk, 0.0, -3.4e38)\nmask = Add(low, rest)\n"), is_pooled);
  EXPECT_EQ(why_not(plain, "mask = Where(bk, 0.0, -inf)\n"), "");
  EXPECT_EQ(why_not(plain, "low = Where(bk, 0.0, -inf)\nlast = Where(bq, 0.0, -100.0)\nmask = Add(low, last)\n"), "");
  EXPECT_THAT(why_not(plain, "low = Where(bk, 0.0, -inf)\nlast = Where(bq, 0.0, -1e5)\nmask = Add(low, last)\n"), is_pooled)
      << "-inf in an f16";
  const std::string seen =
      "shape = Shape(m)\nl = Gather(shape, i64[]{1})\nat = Range(i64[]{0}, l, i64[]{1})\nrow = Unsqueeze(at, axes=[0,1,3])\n"
      "there = GreaterOrEqual(row, i64[]{0})\nseen = And(bk, there)\n";
  EXPECT_EQ(why_not(plain, seen + "mask = Identity(seen)\n"), "");
  EXPECT_EQ(why_not(plain, seen + "mask = Where(seen, 0.0, -inf)\n"), "");
  const std::string masked = seen + "low = Where(seen, 0.0, -inf)\n";
  EXPECT_EQ(why_not(plain, masked + "near = Unsqueeze(m, axes=[1,3])\nmask = Add(low, near)\n"), "") << "a bias of positions";
  EXPECT_THAT(why_not(plain, masked + "near = Where(bq, 0.0, -1e5)\nmask = Add(low, near)\n"), is_pooled);
}

TEST(PaddableRows, AttentionAlongWhatItAddsUp) {
  EXPECT_THAT(proof_of("x: f32[n,2,6,s]\nv: f32[n,2,6,4]\ny = Attention(x, x, v)\nreturn y\n").why_not, HasSubstr("is not known"))
      << "scaled by the length";
}

/// x, its mask m, and what is to be added to the scores of queries (hq) and keys (hk) that do not count.
std::string hidden_by(const std::string& of_queries, const std::string& of_keys) {
  return "x: f32[n,s,4]\nm: f32[n,s]\nuq = Unsqueeze(m, axes=[2])\nbq = Cast(uq, to=bool)\nuk = Unsqueeze(m, axes=[1])\n"
         "bk = Cast(uk, to=bool)\nhq = Where(bq, 0.0, " +
         of_queries + ")\nhk = Where(bk, 0.0, " + of_keys + ")\n";
}

TEST(PaddableRows, RowsOfTheLowestNumbersAreNan) {
  const auto why_not = [](const std::string& low) {
    return proof_of(hidden_by(low, "-inf") +
                    "bias = Add(hq, hk)\n"
                    "products = FusedMatMul(x, x, transB=1)\nsmall = Tanh(products)\nscores = Add(small, bias)\np = Softmax(scores)\n"
                    "rows = MatMul(p, x)\n" +
                    kPooled)
        .why_not;
  };
  EXPECT_THAT(why_not("-inf"), HasSubstr("node 'sum' (ReduceSum) takes in what is behind the end"));
  EXPECT_EQ(why_not("-100.0"), "");
  EXPECT_EQ(why_not("-30000.0"), "");
  EXPECT_THAT(why_not("-1e5"), HasSubstr("takes in what is behind the end")) << "-inf in an f16";
}

TEST(PaddableRows, WhatIsTakenFromThemTwiceCountsTwice) {
  const auto why_not = [](const std::string& low) {
    return proof_of(hidden_by(low, "-3.4e38") +
                    "products = FusedMatMul(x, x, transB=1)\nsmall = Tanh(products)\nonce = Add(small, hq)\ntwice = Add(once, hq)\n"
                    "scores = Add(twice, hk)\np = Softmax(scores)\nrows = MatMul(p, x)\n" +
                    kPooled)
        .why_not;
  };
  EXPECT_EQ(why_not("-16000.0"), "");
  EXPECT_THAT(why_not("-20000.0"), HasSubstr("takes in what is behind the end"));
}

TEST(PaddableRows, RowsKeepTheirOrder) {
  const auto why_not = [](const std::string& rest) { return proof_of("x: f32[n,s,4]\n" + rest + "return y\n").why_not; };
  EXPECT_EQ(why_not("y = Slice(x, axes=[2], ends=[-9], starts=[-1], steps=[-1])\n"), "");
  EXPECT_THAT(why_not("y = Slice(x, axes=[1], ends=[-9223372036854775807], starts=[-1], steps=[-1])\n"), HasSubstr("'y' (Slice)"));
  EXPECT_THAT(why_not("y = Slice(x, axes=[-2], ends=[-9223372036854775807], starts=[-1], steps=[-1])\n"), HasSubstr("'y' (Slice)"));
  EXPECT_THAT(why_not("y = Slice(x, i64{-1}, i64{-9223372036854775807}, i64{1}, i64{-1})\n"), HasSubstr("'y' (Slice)"));
}

TEST(PaddableRows, SumsOfSumsAreNotFollowedForEver) {
  std::string text =
      "x: f32[n,s,4]\nm: f32[n,s]\nu = Unsqueeze(m, axes=[1])\nhidden = Sub(1.0, u)\nb0 = Mul(hidden, -1.0)\n"
      "products = FusedMatMul(x, x, transB=1)\na0 = Add(products, b0)\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("a{} = Add(a{}, a{})\n", i + 1, i, i);
  EXPECT_THAT(proof_of(text + "p = Softmax(a40)\nreturn p\n").why_not, HasSubstr("scores may be of any size"));
  EXPECT_THAT(proof_of(text + "q = Unsqueeze(x, axes=[1])\nw = Unsqueeze(a40, axes=[1])\ny = Attention(q, q, q, w)\nreturn y\n").why_not,
              HasSubstr("'y' (Attention)"));
}

TEST(PaddableRows, ARowOfSeveralPartsIsNanWhereOneOfThemIs) {
  const std::string wild = "x: f32[n,s,4]\nm: f32[n,s]\nl = ReduceL2(x, axes=[2])\nd = Div(x, l)\n";
  EXPECT_THAT(proof_of(wild + "rows = Concat(d, x, axis=2)\n" + kPooled).why_not, HasSubstr("takes in what is behind the end"));
  EXPECT_EQ(proof_of(wild + "rows = Concat(x, x, axis=2)\n" + kPooled).why_not, "");
}

/// Of each row of `m` something counts. Of two of them together there may be nothing that does, and then what is behind the end counts as much.
TEST(PaddableRows, RowsOfAMaskAreNotJoined) {
  const auto why_not = [](const std::string& mask) {
    return proof_of("x: f32[n,s,4]\nm: i64[n,s]\n" + mask +
                    "b = Cast(u, to=bool)\nproducts = FusedMatMul(x, x, transB=1)\n"
                    "scores = Where(b, products, -3.4e38)\np = Softmax(scores)\nreturn p\n")
        .why_not;
  };
  const auto is_refused = HasSubstr("node 'p' (Softmax) has a mask that joins different rows of what counts");
  EXPECT_EQ(why_not("first = Gather(m, i64[]{0}, axis=0)\nu = Unsqueeze(first, axes=[0,1])\n"), "") << "alone it is a row like any other";
  EXPECT_THAT(why_not("first = Gather(m, i64[]{0}, axis=0)\nboth = Mul(m, first)\nu = Unsqueeze(both, axes=[1])\n"), is_refused);
  EXPECT_EQ(why_not("both = Mul(m, m)\nu = Unsqueeze(both, axes=[1])\n"), "");
  EXPECT_EQ(why_not("wide = Unsqueeze(m, axes=[1])\nagain = Reshape(m, i64{0,1,-1})\nu = Mul(wide, again)\n"), "");
}

TEST(PaddableRows, NorWhereTheyMeetByBroadcasting) {
  const auto why_not = [](const std::string& low, const std::string& second) {
    return proof_of("x: f32[n,n,s]\nm: f32[n,s]\nsmall = Tanh(x)\nhidden = Sub(1.0, m)\nbias = Mul(hidden, " + low +
                    ")\na = Unsqueeze(bias, axes=[1])\nb = Unsqueeze(bias, axes=[0])\nonce = Add(small, a)\nscores = Add(once, " + second +
                    ")\np = Softmax(scores)\nreturn p\n")
        .why_not;
  };
  const auto is_refused = HasSubstr("joins different rows");
  EXPECT_EQ(why_not("-3.4e38", "a"), "");
  EXPECT_EQ(why_not("-10000.0", "a"), "");
  EXPECT_THAT(why_not("-3.4e38", "b"), is_refused);
  EXPECT_THAT(why_not("-10000.0", "b"), is_refused);
  EXPECT_THAT(proof_of("x: f32[4,4,s]\nm: i64[4,4,s]\nt = Transpose(m, perm=[1,0,2])\nboth = Mul(m, t)\nb = Cast(both, to=bool)\n"
                       "scores = Where(b, x, -3.4e38)\np = Softmax(scores)\nreturn p\n")
                  .why_not,
              is_refused);
}

TEST(PaddableRows, NoQueryNeedSeeMoreThanTheMask) {
  const auto why_not = [](const std::string& hidden) {
    return proof_of(
               "x: f32[n,s,4]\nm: f32[n,s]\nuk = Unsqueeze(m, axes=[1])\nbk = Cast(uk, to=bool)\nuq = Unsqueeze(m, axes=[2])\n"
               "bq = Cast(uq, to=bool)\nshape = Shape(m)\nl = Gather(shape, i64[]{1})\nat = Range(i64[]{0}, l, i64[]{1})\n"
               "rk = Unsqueeze(at, axes=[0])\nrq = Unsqueeze(at, axes=[1])\nback = LessOrEqual(rk, rq)\n"
               "products = FusedMatMul(x, x, transB=1)\nsmall = Tanh(products)\n" +
               hidden + "scores = Where(bk, hidden, -3.4e38)\np = Softmax(scores)\ny = MatMul(p, x)\nreturn y\n")
        .why_not;
  };
  const auto is_refused = HasSubstr("its mask tells queries apart, and one that it leaves nothing that counts would share with it");
  EXPECT_EQ(why_not("hidden = Identity(small)\n"), "");
  EXPECT_THAT(why_not("hidden = Where(back, small, -3.4e38)\n"), is_refused) << "the first may be hidden, and is all that the first sees";
  EXPECT_THAT(why_not("hidden = Where(bq, small, -3.4e38)\n"), is_refused);
  EXPECT_THAT(why_not("hidden = Where(bq, 0.0, -3.4e38)\n"), is_refused) << "which has no keys";
}

TEST(PaddableRows, WhatCountsIsSaidAlongTheLastAxis) {
  const auto why_not = [](const std::string& mask) {
    return proof_of("x: f32[n,s,4]\n" + mask +
                    "b = Cast(u, to=bool)\nproducts = FusedMatMul(x, x, transB=1)\n"
                    "scores = Where(b, products, -3.4e38)\np = Softmax(scores)\nreturn p\n")
        .why_not;
  };
  EXPECT_EQ(why_not("m: f32[n,s]\nu = Unsqueeze(m, axes=[1])\n"), "");
  EXPECT_EQ(why_not("m: f32[s,n]\nt = Transpose(m, perm=[1,0])\nu = Unsqueeze(t, axes=[1])\n"),
            "input 'm' says what counts along another axis than its last");
  EXPECT_EQ(why_not("f = Gather(x, i64[]{0}, axis=2)\nu = Unsqueeze(f, axes=[1])\n"),
            "input 'x' says what counts along another axis than its last");
}

}  // namespace
}  // namespace serin::graph
