// Shape inference and the batch proof of examples, sparse tensors, and boxes of all classes.

#include <fmt/format.h>

#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

constexpr std::string_view kDense = R"(keys=["age","v"], types=["f32","i64"], ranks=[0,2], dims=[2,3])";

/// The types of all results of node "p", or why it is refused.
std::string types_of(std::string_view text) {
  auto graph = parse(text);
  if (!graph) return graph.error().message;
  if (const Status inferred = infer_shapes(*graph); !inferred) return inferred.error().message;
  std::string types;
  for (const NodeId node : graph->nodes())
    for (const ValueId result : graph->node(node).outputs) types += (types.empty() ? "" : " ") + print(graph->value(result).type);
  return types;
}

std::string example(std::string_view results, std::string_view attributes, std::string_view input = "str[n]") {
  return types_of(fmt::format("x: {}\n{} = ParseExample(x, {})\nreturn a", input, results, attributes));
}

TEST(InferSparse, ParseExampleMakesATensorOfEachFeature) {
  EXPECT_EQ(example("a, b", kDense), "f32[n] i64[n,2,3]");
  EXPECT_EQ(example("a, b", kDense, "str[]"), "f32[] i64[2,3]");
  EXPECT_THAT(example("a, b, c, d, e", R"(keys=["s","r"], types=["str","f32"], sparse=1, ragged=1)"),
              testing::MatchesRegex(R"(i64\[\?.*,2\] str\[\?.*\] i64\[2\] f32\[\?.*\] i64\[n \+ 1\])"));
}

TEST(InferSparse, ParseExampleRefusesWhatContradictsItself) {
  EXPECT_THAT(example("a, b", kDense, "f32[n]"), testing::HasSubstr("must be strings"));
  EXPECT_THAT(example("a, b", kDense, "str[n,2]"), testing::HasSubstr("must be [n] or []"));
  EXPECT_THAT(example("a", kDense), testing::HasSubstr("it has 1 results"));
  EXPECT_THAT(example("a", R"(keys=["a"], types=["f64"], ranks=[0], dims=[])"), testing::HasSubstr("'f64'"));
  EXPECT_THAT(example("a", R"(keys=["a"], types=["f32"], ranks=[3], dims=[1])"), testing::HasSubstr("do not fit"));
  EXPECT_THAT(example("a", R"(keys=["a"], types=["f32"], ranks=[-1], dims=[1])"), testing::HasSubstr("do not fit"));
  EXPECT_THAT(example("a", R"(keys=["a"], types=["f32"], ranks=[1], dims=[-2])"), testing::HasSubstr("negative"));
  EXPECT_THAT(example("a", R"(keys=["a"], types=["f32"], sparse=-1, ragged=2)"), testing::HasSubstr("-1 sparse"));
  EXPECT_THAT(types_of("x: str[n]\nd: i64[1]\na = ParseExample(x, d, keys=[\"a\"], types=[\"f32\"], ranks=[0], dims=[])\nreturn a"),
              testing::HasSubstr("operand 1 is i64"));
}

TEST(InferSparse, SparseTensors) {
  const std::string sparse = "i: i64[k,2]\nv: f32[k]\ns: i64[2]\nd: f32[]\n";
  EXPECT_EQ(types_of(sparse + "a, b = SparseReshape(i, s, i64{2,-1,2})\nreturn a"), "i64[k,3] i64[3]");
  EXPECT_THAT(types_of(sparse + "a, b, c, e = FillEmptyRows(i, v, s, d)\nreturn a"),
              testing::MatchesRegex(R"(i64\[\?.*,2\] f32\[\?.*\] bool\[\?.*\] i64\[k\])"));
  EXPECT_THAT(types_of(sparse + "a, b, c, e = FillEmptyRows(v, v, s, d)\nreturn a"), testing::HasSubstr("must be [values, rank]"));
  EXPECT_EQ(types_of("x: f32[k,3]\ni: i64[k]\na = SegmentReduce(x, i, i64{5})\nreturn a"), "f32[5,3]");
  EXPECT_THAT(types_of("x: f32[k,3]\ni: i64[k]\na = SegmentReduce(x, i)\nreturn a"), testing::MatchesRegex(R"(f32\[\?.*,3\])"));
  EXPECT_THAT(types_of("x: f32[]\ni: i64[k]\na = SegmentReduce(x, i)\nreturn a"), testing::HasSubstr("rows have shape []"));
}

TEST(InferSparse, CombinedNonMaxSuppression) {
  const auto of = [](std::string_view attributes, std::string_view limits = "i64{4}, i64{10}") {
    return types_of(
        fmt::format("x: f32[n,30,1,4]\ns: f32[n,30,3]\nt: f32[]\na, b, c, d = CombinedNonMaxSuppression(x, s, {}, t, t{})\nreturn a",
                    limits, attributes));
  };
  EXPECT_EQ(of(""), "f32[n,10,4] f32[n,10] f32[n,10] i32[n]");
  EXPECT_EQ(of(", pad_per_class=1", "i64{2}, i64{10}"), "f32[n,6,4] f32[n,6] f32[n,6] i32[n]");
  EXPECT_THAT(
      types_of("x: f32[n,30,4]\ns: f32[n,30,3]\nt: f32[]\na, b, c, d = CombinedNonMaxSuppression(x, s, i64{1}, i64{1}, t, t)\nreturn a"),
      testing::HasSubstr("must be [batch, boxes, sets, 4]"));
}

std::string batch_refusal(std::string_view text) { return prove_batchable(graph_of(text)).why_not; }

TEST(InferSparse, RowsOfDenseFeaturesAreIndependent) {
  EXPECT_EQ(batch_refusal(fmt::format("x: str[n]\na, b = ParseExample(x, {})\nreturn a, b", kDense)), "");
  EXPECT_THAT(batch_refusal("x: str[n]\na, b, c = ParseExample(x, keys=[\"s\"], types=[\"i64\"], sparse=1)\nreturn c"),
              testing::HasSubstr("lists the values of a whole batch"));
  EXPECT_EQ(batch_refusal("x: str[n,2]\ny = HashBucket(x, buckets=3)\nreturn y"), "");
  EXPECT_EQ(batch_refusal(
                "x: f32[n,30,1,4]\ns: f32[n,30,3]\na, b, c, d = CombinedNonMaxSuppression(x, s, i64{1}, i64{5}, 0.5, 0.5)\nreturn a, d"),
            "");
}

}  // namespace
}  // namespace serin::graph
