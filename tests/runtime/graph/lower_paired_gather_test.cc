// lower_paired_gather: x[i, j] as torch's two exporters write it, before and after.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/graph/passes/passes.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

using ::testing::HasSubstr;

std::string lowered(const std::string& text) {
  Graph graph = graph_of(text);
  EXPECT_TRUE(apply(LowerPairedGather(), graph));
  EXPECT_TRUE(apply(DeadCode(), graph));
  return print(graph);
}

/// A mask and the numbers of its rows, as [batch, 1, 1, 1].
const std::string kRows = R"(
    mask: i64[batch,seq]
    s = Shape(mask)
    n = Gather(s, i64[]{0})
    count = Range(i64[]{0}, n, i64[]{1})
    i = Unsqueeze(count, axes=[1,2,3])
)";
const std::string kPlaces = R"(
    t = Gather(s, i64[]{1})
    places = Range(i64[]{0}, t, i64[]{1})
    j = Unsqueeze(places, axes=[0,1,2])
)";
/// The tracer's: rows of the flattened mask, and a result shaped by way of a vector.
const std::string kFlat = R"(
    flat = Flatten(mask, axis=2)
    length = Gather(s, i64{1})
    start = Mul(i, length)
    at = Add(j, start)
    found = Gather(flat, at, axis=0)
    list = Reshape(found, i64{-1})
    shape = Shape(at)
    y = Reshape(list, shape)
    return y
)";
/// The newer exporter's: pairs of indices.
const std::string kPairs = R"(
    to = Concat(n1, i64{1}, i64{1}, t1, axis=0)
    wide_i = Expand(i, to)
    wide_j = Expand(j, to)
    left = Unsqueeze(wide_i, axes=[4])
    right = Unsqueeze(wide_j, axes=[4])
    pairs = Concat(left, right, axis=-1)
    y = GatherND(mask, pairs)
    return y
)";
const std::string kSizes = "    n1 = Unsqueeze(n, axes=[0])\n    t1 = Unsqueeze(t, axes=[0])\n";

TEST(LowerPairedGather, AWholeRowIsNoLookup) {
  constexpr std::string_view kWanted = "mask: i64[batch,seq]\ny = Unsqueeze(mask, axes=[1,2])\nreturn y\n";
  EXPECT_EQ(lowered(kRows + kPlaces + kFlat), kWanted);
  EXPECT_EQ(lowered(kRows + kPlaces + kSizes + kPairs), kWanted);
}

TEST(LowerPairedGather, CountsThatAZeroIsAddedTo) {
  const std::string places = R"(
    t = Gather(s, i64[]{1})
    range = Range(i64[]{0}, t, i64[]{1})
    places = Add(range, i64[]{0})
    j = Unsqueeze(places, axes=[0,1,2])
)";
  EXPECT_EQ(lowered(kRows + places + kFlat), "mask: i64[batch,seq]\ny = Unsqueeze(mask, axes=[1,2])\nreturn y\n");
  std::string one = places;
  one.replace(one.find("i64[]{0})\n    j"), 8, "i64[]{1}");
  EXPECT_TRUE(leaves(LowerPairedGather(), kRows + one + kFlat));
}

TEST(LowerPairedGather, OfAFixedLength) {
  EXPECT_EQ(lowered(R"(
    mask: i64[batch,4]
    s = Shape(mask)
    n = Gather(s, i64[]{0})
    count = Range(i64[]{0}, n, i64[]{1})
    i = Unsqueeze(count, axes=[1,2,3])
    start = Mul(i, i64{4})
    at = Add(start, j:i64[1,1,1,4]{0,1,2,3})
    flat = Flatten(mask, axis=2)
    y = Gather(flat, at, axis=0)
    return y
  )"),
            "mask: i64[batch,4]\ny = Unsqueeze(mask, axes=[1,2])\ny~2 = Unsqueeze(y, axes=[-1])\nreturn y~2\n");
}

TEST(LowerPairedGather, AsManyPlacesAsAnotherInputSays) {
  const std::string places = R"(
    x: f32[batch,part]
    s2 = Shape(x)
    t = Gather(s2, i64[]{1})
    places = Range(i64[]{0}, t, i64[]{1})
    j = Unsqueeze(places, axes=[0,1,2])
)";
  const std::string rows = "    mask: i64[batch,seq]\n" + places.substr(1) + kRows.substr(kRows.find("    s = "));
  for (const std::string& text : {rows + kFlat, rows + kSizes + kPairs}) {
    const std::string made = lowered(text);
    EXPECT_THAT(made, HasSubstr(" = Gather(mask, ")) << made;
    EXPECT_EQ(output_type(made), "i64[batch,1,1,part]") << made;
    EXPECT_TRUE(prove_batchable(graph_of(made)).yes) << made;
  }
}

TEST(LowerPairedGather, PlacesThatDifferFromRowToRow) {
  const std::string made = lowered(R"(
    x: f32[batch,seq,8]
    last: i64[batch]
    s = Shape(x)
    n = Gather(s, i64[]{0})
    i = Range(i64[]{0}, n, i64[]{1})
    left = Unsqueeze(i, axes=[1])
    right = Unsqueeze(last, axes=[1])
    pairs = Concat(left, right, axis=-1)
    y = GatherND(x, pairs)
    return y
  )");
  EXPECT_THAT(made, HasSubstr("GatherND(x, right, batch_dims=1)"));
  EXPECT_TRUE(prove_batchable(graph_of(made)).yes) << made;
}

TEST(LowerPairedGather, AllOfEachRowInOrderIsAView) {
  const std::string text = R"(
    x: f32[batch,2,3]
    s = Shape(x)
    n = Gather(s, i64[]{0})
    flat = Reshape(x, i64{-1})
    i = Range(i64[]{0}, n, i64[]{1})
    starts = Mul(i, six:i64[]{6})
    column = Unsqueeze(starts, axes=[1,2])
    partly = Add(column, k:i64[1,6,1]{0,1,2,3,4,5})
    at = Add(partly, i64[1,1,1]{0})
    y = Gather(flat, at, axis=0)
    return y
  )";
  const std::string made = lowered(text);
  EXPECT_THAT(made, HasSubstr("y = Reshape(x, y.shape:i64[3]{0,6,1})")) << made;
  EXPECT_TRUE(prove_batchable(graph_of(made)).yes) << made;
  for (const auto& [part, with] : std::map<std::string, std::string>{{"{0,1,2,3,4,5}", "{0,1,2,3,5,4}"}, {"{6}", "{5}"}}) {
    std::string other = text;
    other.replace(other.find(part), part.size(), with);
    EXPECT_TRUE(leaves(LowerPairedGather(), other)) << other;
  }
}

TEST(LowerPairedGather, LeavesWhatDoesNotCountTheRows) {
  const auto stays = [](std::string text, const std::string& part, const std::string& with) {
    text.replace(text.find(part), part.size(), with);
    EXPECT_TRUE(leaves(LowerPairedGather(), text)) << text;
  };
  const std::string flat = kRows + kPlaces + kFlat, pairs = kRows + kPlaces + kSizes + kPairs;
  stays(flat, "Range(i64[]{0}, n, i64[]{1})", "Range(i64[]{0}, n, i64[]{2})");
  stays(flat, "Range(i64[]{0}, t, i64[]{1})", "Range(i64[]{-1}, t, i64[]{1})");  // would look into the row before
  stays(flat, "Mul(i, length)", "Mul(i, i64{7})");
  stays(flat, "axis=2)", "axis=1)");
  stays(pairs, "Range(i64[]{0}, n, i64[]{1})", "Range(i64[]{1}, n, i64[]{1})");
  stays(pairs, "Concat(left, right", "Concat(right, left");
}

}  // namespace
}  // namespace serin::graph
