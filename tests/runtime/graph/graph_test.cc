// The graph itself: who reads what stays true through every edit, and verify finds what is not a graph.

#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Type vector_of(Dim dim) { return Type::tensor(DType::kFloat32, {std::move(dim)}); }

TEST(Graph, KnowsItsReadersThroughEdits) {
  Graph graph;
  const ValueId x = graph.add_input("x", vector_of(4));
  const NodeId twice = graph.add_node(Op::kAdd, "twice", {x, x});
  const NodeId relu = graph.add_node(Op::kRelu, "relu", {graph.output(twice)});
  graph.set_outputs({graph.output(relu)});
  EXPECT_EQ(graph.reader_count(x), 2U);
  EXPECT_THAT(graph.readers(x), ElementsAre(twice));

  const NodeId neg = graph.add_node(Op::kNeg, "neg", {x});
  graph.replace_uses(graph.output(twice), graph.output(neg));
  graph.remove(twice);
  EXPECT_EQ(graph.reader_count(x), 1U);
  EXPECT_EQ(graph.input(relu, 0), graph.output(neg));
  graph.compact();
  EXPECT_TRUE(verify(graph));
  EXPECT_EQ(print(graph), "x: f32[4]\nneg = Neg(x)\nrelu = Relu(neg)\nreturn relu\n");
}

TEST(Graph, ReplacingAnOutputKeepsTheNameOfTheFile) {
  Graph graph = graph_of("x: f32[4]\ny = Relu(x)\nreturn y\n");
  const NodeId neg = graph.add_node(Op::kNeg, "n", {graph.inputs()[0]});
  graph.replace_uses(graph.outputs()[0], graph.output(neg));
  EXPECT_TRUE(graph.is_output(graph.output(neg)));
  graph.remove(0);
  EXPECT_EQ(print(graph), "x: f32[4]\nn = Neg(x)\nreturn n as y\n");
}

TEST(Verify, NamesTheNodeOnACycle) {
  Graph graph;
  const ValueId x = graph.add_input("x", vector_of(4));
  const NodeId a = graph.add_node(Op::kAdd, "a", {x, x});
  const NodeId b = graph.add_node(Op::kRelu, "b", {graph.output(a)});
  graph.set_input(a, 1, graph.output(b));
  graph.set_outputs({graph.output(b)});
  EXPECT_EQ(verify(graph).error().message, "node 'a' (Add) is on a cycle, or reads from one");
}

TEST(Verify, CountsOperandsAndBodies) {
  EXPECT_EQ(refusal("x: f32[4]\ny = Add(x)\nreturn y"), "verify: node 'y' (Add): has 1 operands, needs 2");
  EXPECT_EQ(refusal("x: f32[4]\ny = Conv(x)\nreturn y"), "verify: node 'y' (Conv): has 1 operands, needs 2 to 3");
  EXPECT_EQ(refusal("x: f32[4]\ny = Add(x, _)\nreturn y"), "verify: node 'y' (Add): operand 1 is missing");
  EXPECT_EQ(refusal("x: bool[]\ny = If(x)\nreturn y"), "verify: node 'y' (If): has 0 bodies, needs 2");
}

TEST(Verify, FindsValuesThatNothingMakes) {
  Graph graph;
  const ValueId lost = graph.add_value("lost", vector_of(4));
  graph.set_outputs({graph.output(graph.add_node(Op::kRelu, "y", {lost}))});
  EXPECT_EQ(verify(graph).error().message, "node 'y' (Relu): reads 'lost', which nothing makes");
  graph.set_outputs({lost});
  graph.remove(0);
  EXPECT_EQ(verify(graph).error().message, "output 'lost' is made by nothing");
}

TEST(Verify, FindsOperandsChangedBehindItsBack) {
  Graph graph = graph_of("x: f32[4]\ny = Relu(x)\nz = Neg(x)\nreturn z\n");
  graph.node(0).inputs[0] = graph.output(1);
  EXPECT_THAT(verify(graph).error().message, HasSubstr("set_input"));
}

}  // namespace
}  // namespace serin::graph
