// Nodes that a builder appends have types and elements at once, and names of their own.
#include "runtime/graph/builder.h"

#include <gtest/gtest.h>

#include <limits>

namespace serin::graph {
namespace {

TEST(Builder, InfersEachNodeWhenItIsAdded) {
  Graph graph;
  const ValueId x = graph.add_input("x", Type::tensor(DType::kFloat32, {Dim::symbol("batch"), 6}));
  Builder b(graph);
  b.start("head");
  const ValueId folded = b.reshape(x, {-1, 2, 3});
  EXPECT_EQ(print(b.type(folded)), "f32[batch,2,3]");
  EXPECT_EQ(b.rank(folded), 3U);
  EXPECT_EQ(b.size(folded, 0), std::nullopt);
  EXPECT_EQ(b.size(folded, 2), 3);
  EXPECT_EQ(print(b.type(b.transpose(folded, {0, 2, 1}))), "f32[batch,3,2]");
  EXPECT_EQ(print(b.type(b.slice(folded, 2, 1, 3))), "f32[batch,2,2]");
  EXPECT_EQ(print(b.type(b.squeeze(b.unsqueeze(folded, {0}), {0}))), "f32[batch,2,3]");
  const ValueId sum = b.add(Op::kAdd, {folded, b.number(DType::kFloat32, 2), kNone});
  graph.set_outputs({b.cast(b.cast(sum, DType::kFloat32), DType::kInt64)});
  EXPECT_FALSE(b.error());
  EXPECT_TRUE(verify(graph));
}

TEST(Builder, KnowsTheElementsOfShapes) {
  Graph graph;
  const ValueId x = graph.add_input("x", Type::tensor(DType::kFloat32, {Dim::symbol("batch"), 6}));
  Builder b(graph);
  b.start("s");
  const ValueId shape = b.add(Op::kShape, {x});
  ASSERT_TRUE(b.elements(shape));
  EXPECT_EQ(print(*b.elements(shape)), "[batch,6]");
  EXPECT_EQ(b.known_integers(shape), std::nullopt);
  EXPECT_EQ(b.known_integers(b.slice(shape, 0, 1, 2)), std::vector<int64_t>{6});
  EXPECT_EQ(b.known_integers(b.integers({4, 5})), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(b.elements(x), nullptr);
  EXPECT_EQ(b.elements(kNone), nullptr);
}

TEST(Builder, KnowsNothingOfAValueThatIsNotThere) {
  Graph graph;
  Builder b(graph);
  EXPECT_EQ(b.dtype(kNone), DType::kUndefined);
  EXPECT_FALSE(b.dims(kNone));
  EXPECT_FALSE(b.rank(kNone));
  EXPECT_FALSE(b.type(kNone).shape);
}

TEST(Builder, GivesTheEndsOfATypeForNumbersBeyondIt) {
  Graph graph;
  Builder b(graph);
  b.start("n");
  const auto integer = [&](DType dtype, double value) { return integers_of(*graph.constant(b.number(dtype, value)))->front(); };
  EXPECT_EQ(integer(DType::kInt32, 1e30), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(integer(DType::kInt32, -1e30), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(integer(DType::kInt64, 1e30), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(integer(DType::kInt64, -std::numeric_limits<double>::infinity()), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(integer(DType::kInt64, std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(integer(DType::kInt64, -7.9), -7);
  EXPECT_EQ(integer(DType::kUInt8, -100), 0);
  EXPECT_EQ(integer(DType::kInt8, 200), 127);
}

TEST(Builder, GivesEachNodeANameOfItsOwn) {
  Graph graph;
  const ValueId x = graph.add_input("x", Type::tensor(DType::kFloat32, {2}));
  Builder b(graph);
  for (const char* node : {"a", "a", "b"}) {
    b.start(node);
    b.add(Op::kRelu, {x});
    b.add(Op::kRelu, {x});
  }
  std::vector<std::string> names;
  for (const NodeId id : graph.nodes()) names.push_back(graph.node(id).name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "a/Relu", "a/Relu_2", "a/Relu_3", "b", "b/Relu"}));
  const ValueId first = b.constant("w", make_scalar(DType::kFloat32, 1)), second = b.constant("w", make_scalar(DType::kFloat32, 1));
  EXPECT_NE(graph.value(first).name, graph.value(second).name);
}

TEST(Builder, KeepsTheFirstError) {
  Graph graph;
  const ValueId x = graph.add_input("x", Type::tensor(DType::kFloat32, {2, 3}));
  Builder b(graph);
  b.start("first");
  const ValueId wrong = b.reshape(x, {5});
  b.start("second");
  b.add(Op::kConcat, {});
  b.fail(Code::kUnsupported, "third");
  ASSERT_TRUE(b.error());
  EXPECT_EQ(b.error()->code, Code::kInvalidArgument);
  EXPECT_NE(b.error()->message.find("'first'"), std::string::npos) << b.error()->message;
  EXPECT_EQ(b.rank(wrong), std::nullopt);
}

TEST(Builder, RefusesANodeWithoutItsOperands) {
  Graph graph;
  Builder b(graph);
  b.start("empty");
  b.add(Op::kRelu, {});
  ASSERT_TRUE(b.error());
  EXPECT_NE(b.error()->message.find("empty"), std::string::npos);
}

TEST(Builder, MakesNumbersOfEveryType) {
  Graph graph;
  Builder b(graph);
  b.start("n");
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt32, DType::kBool})
    EXPECT_EQ(b.dtype(b.number(dtype, 1)), dtype) << dtype_name(dtype);
  EXPECT_FALSE(b.error());
  b.number(DType::kString, 1);
  EXPECT_TRUE(b.error());
}

}  // namespace
}  // namespace serin::graph
