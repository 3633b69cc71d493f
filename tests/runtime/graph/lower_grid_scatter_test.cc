// lower_grid_scatter: x[..., a:b] = y as torch's exporters write it, before and after.

#include <gtest/gtest.h>

#include <string>

#include "runtime/graph/passes/passes.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

using ::testing::HasSubstr;

/// Boxes [batch, 3, 4] and what is written into two of their numbers, with the places along each axis but the last.
const std::string kBoxes = R"(
    x: f32[batch,3,4]
    y: f32[batch,3,2]
    s = Shape(x)
    n = Gather(s, i64[]{0})
    rows = Range(i64[]{0}, n, i64[]{1})
    i = Reshape(rows, i64{-1,1,1})
    n1 = Unsqueeze(n, axes=[0])
    to = Concat(n1, i64{3}, i64{2}, axis=0)
    wide_i = Expand(i, to)
    left = Unsqueeze(wide_i, axes=[-1])
)";

/// The places of x[..., first : first + 2], or others.
std::string written(const std::string& middle, const std::string& last, const std::string& how = "") {
  return kBoxes + "    wide_j = Expand(" + middle + ", to)\n    wide_k = Expand(" + last + R"(, to)
    centre = Unsqueeze(wide_j, axes=[-1])
    right = Unsqueeze(wide_k, axes=[-1])
    at = Concat(left, centre, right, axis=-1)
    out = ScatterND(x, at, y)" +
         how + ")\n    return out\n";
}

const std::string kAllOfThree = "i64[3,1]{0,1,2}";

std::string lowered_scatter(const std::string& text) {
  Graph graph = graph_of(text);
  EXPECT_TRUE(apply(LowerGridScatter(), graph));
  EXPECT_TRUE(apply(DeadCode(), graph));
  return print(graph);
}

TEST(LowerGridScatter, APartOfAnAxisIsJoinedWithTheRest) {
  const std::string begin = "x: f32[batch,3,4]\ny: f32[batch,3,2]\n";
  EXPECT_EQ(
      lowered_scatter(written(kAllOfThree, "i64[2]{0,1}")),
      begin +
          "out = Slice(x, axes=[2], ends=[9223372036854775807], starts=[2], steps=[1])\nout~2 = Concat(y, out, axis=2)\nreturn out~2\n");
  const std::string last = lowered_scatter(written(kAllOfThree, "i64[2]{2,3}"));
  EXPECT_THAT(last, HasSubstr("ends=[2], starts=[0]")) << last;
  const std::string middle = lowered_scatter(written(kAllOfThree, "i64[2]{1,2}"));
  EXPECT_THAT(middle, HasSubstr("ends=[1], starts=[0]")) << middle;
  EXPECT_THAT(middle, HasSubstr("starts=[3]")) << middle;
}

TEST(LowerGridScatter, RowsAreProvenIndependent) {
  const Graph before = graph_of(written(kAllOfThree, "i64[2]{1,2}"));
  EXPECT_FALSE(prove_batchable(before).yes);
  EXPECT_TRUE(prove_batchable(graph_of(lowered_scatter(written(kAllOfThree, "i64[2]{1,2}")))).yes);
}

TEST(LowerGridScatter, PlacesAlongTheFirstAxis) {
  const std::string made = lowered_scatter("x: f32[4,seq]\ny: f32[2,seq]\nout = ScatterND(x, i64[2,1]{1,2}, y)\nreturn out\n");
  EXPECT_THAT(made, HasSubstr("Concat(out, y, out~2, axis=0)")) << made;
}

TEST(LowerGridScatter, LeavesOtherPlaces) {
  const std::string cases[] = {
      written(kAllOfThree, "i64[2]{1,3}"),                                                  // not side by side
      written(kAllOfThree, "i64[2]{2,1}"),                                                  // backwards
      written(kAllOfThree, "i64[2]{-2,-1}"),                                                // from the end
      written("i64[3,1]{0,2,1}", "i64[2]{0,1}"),                                            // in another order
      written("i64[3,2]{0,0,1,1,2,2}", "i64[2]{0,1}"),                                      // of another shape
      written(kAllOfThree, "i64[2]{0,1}", ", reduction=\"add\""),                           // sums
      "x: f32[n,seq]\ny: f32[2,seq]\nout = ScatterND(x, i64[2,1]{1,2}, y)\nreturn out\n",   // perhaps behind the end
      "x: f32[4,seq]\ny: f32[2,seq]\ni: i64[2,1]\nout = ScatterND(x, i, y)\nreturn out\n",  // unknown
      "x: f32[4,6]\ny: f32[2]\nout = ScatterND(x, i64[2,2]{0,1,0,2}, y)\nreturn out\n",     // single elements
  };
  for (const std::string& text : cases) EXPECT_TRUE(leaves(LowerGridScatter(), text)) << text;
}

}  // namespace
}  // namespace serin::graph
