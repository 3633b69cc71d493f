// Tables that are looked at behind the end, too: what is found there is as finite as the table.

#include <gmock/gmock.h>

#include "tests/runtime/graph/paddable_proof.h"

namespace serin::graph {
namespace {

using testing::HasSubstr;

const auto kIsPooled = HasSubstr("node 'sum' (ReduceSum) takes in what is behind the end");

TEST(PaddableLookups, PositionsThatAreCountedUp) {  // as RoBERTa does: tokens that are no padding, by the id of padding
  const auto why_not = [](const std::string& rows) {
    return proof_of(
               "ids: i64[n,s]\nm: f32[n,s]\nis = Equal(ids, i64[]{1})\nreal = Not(is)\none = Cast(real, to=i32)\n"
               "upto = CumSum(one, i32[]{1})\nhere = Mul(upto, one)\nwide = Cast(here, to=i64)\nat = Add(wide, i64[]{1})\n" +
               rows + kPooled)
        .why_not;
  };
  EXPECT_EQ(why_not("rows = Gather(table[64,4], at)\n"), "");
  EXPECT_THAT(why_not("rows = Gather(table:f32[2,4]{0,0,0,0,0,-inf,0,0}, at)\n"), kIsPooled);
  EXPECT_THAT(why_not("rows = Gather(table:f32[2,4]{0,0,0,0,0,nan,0,0}, at)\n"), kIsPooled);
  const std::string types = "shape = Shape(ids)\nn = Slice(shape, axes=[0], ends=[1], starts=[0])\nto = Concat(n, i64{4}, axis=0)\n";
  EXPECT_EQ(why_not(types +
                    "all = Expand(zero:i64[1,4]{0,0,0,0}, to)\ntype = GatherElements(all, at, axis=1)\nrows = Gather(table[2,4], type)\n"),
            "");
  EXPECT_THAT(
      why_not(types +
              "all = Expand(low:f32[1,4]{0,0,0,-inf}, to)\nfound = GatherElements(all, at, axis=1)\nrows = Unsqueeze(found, axes=[2])\n"),
      kIsPooled);
}

TEST(PaddableLookups, TheFirstRowsOfATable) {
  const auto why_not = [](const std::string& table) {
    return proof_of("x: f32[n,s,4]\nm: f32[n,s]\nshape = Shape(m)\nl = Slice(shape, axes=[0], ends=[2], starts=[1])\nat = Slice(" + table +
                    ", _, l, axes=[0], starts=[0], steps=[1])\nrows = Add(x, at)\n" + kPooled)
        .why_not;
  };
  EXPECT_EQ(why_not("table[8,4]"), "");
  EXPECT_THAT(why_not("table:f32[2,4]{0,0,0,0,0,0,0,-inf}"), kIsPooled);
  EXPECT_THAT(why_not("table:f32[2,4]{0,0,0,0,0,0,0,-1e5}"), kIsPooled) << "-inf in an f16";
}

TEST(PaddableLookups, WhatIsKnownNotToBeThere) {
  const auto why_not = [](const std::string& first) {
    return proof_of("ids: i64[n,s]\nfar = Sub(ids, i64[]{" + first + "})\ne = Gather(words[30,8], far)\nreturn e\n").why_not;
  };
  EXPECT_EQ(why_not("30"), "") << "from the end";
  EXPECT_EQ(why_not("31"), "node 'e' (Gather) looks up element -31 of 30 behind the end");
  EXPECT_EQ(why_not("-29"), "");
  EXPECT_EQ(why_not("-30"), "node 'e' (Gather) looks up element 30 of 30 behind the end");
}

TEST(PaddableLookups, ElementsOfEachRow) {
  const auto why_not = [](const std::string& rest) { return proof_of("x: f32[n,s,6]\nm: f32[n,s]\ni: i64[n,s,2]\n" + rest).why_not; };
  EXPECT_EQ(why_not("rows = GatherElements(x, i, axis=2)\n" + std::string(kPooled)), "");
  EXPECT_THAT(why_not("l = ReduceL2(x, axes=[2])\nd = Div(x, l)\nrows = GatherElements(d, i, axis=2)\n" + std::string(kPooled)), kIsPooled);
  EXPECT_THAT(why_not("rows = GatherElements(x, i, axis=1)\nreturn rows\n"), HasSubstr("that need not be there"));
  EXPECT_THAT(why_not("j = Gather(i, i64[1]{0}, axis=1)\nrows = GatherElements(x, j, axis=2)\nreturn rows\n"),
              HasSubstr("works along 's'"));
  EXPECT_THAT(why_not("t = Transpose(x, perm=[0,2,1])\nj = Transpose(i, perm=[0,2,1])\nrows = GatherElements(t, j, axis=2)\nreturn rows\n"),
              HasSubstr("that need not be there"));
}

}  // namespace
}  // namespace serin::graph
