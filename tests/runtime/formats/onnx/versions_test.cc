// One operator, two decades of exporters: whatever version a node is written in, the same canonical node comes out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/formats/onnx/encode.h"

namespace serin::formats {
namespace {

using ::testing::HasSubstr;

/// The line of the graph's text that defines y, for a model of one node over x: f32[n,4] and these constants.
std::string line_of_y(int64_t opset, const Encoder& one_node, const std::vector<Encoder>& constants = {}) {
  const auto graph = read(model(opset, {{one_node}, constants, {value("x", {"n", "4"})}, {value("y", {})}}));
  if (!graph) return graph.error().message;
  const std::string text = print(*graph);
  const size_t first = text.find('\n') + 1;  // behind the line of the input
  return text.substr(first, text.find("return") - first);
}

TEST(Versions, UnsqueezeAxes) {
  const std::string expected = "y = Unsqueeze(x, axes=[0])\n";
  EXPECT_EQ(line_of_y(12, node("Unsqueeze", "y", {"x"}, {"y"}, {attribute("axes", std::vector<int64_t>{0})})), expected);
  EXPECT_EQ(line_of_y(13, node("Unsqueeze", "y", {"x", "a"}, {"y"}), {i64("a", {0})}), expected);
}

TEST(Versions, ReduceAxes) {
  const std::string expected = "y = ReduceMean(x, axes=[1], keepdims=0)\n";
  const Encoder keep = attribute("keepdims", int64_t{0});
  EXPECT_EQ(line_of_y(13, node("ReduceMean", "y", {"x"}, {"y"}, {attribute("axes", std::vector<int64_t>{1}), keep})), expected);
  EXPECT_EQ(line_of_y(18, node("ReduceMean", "y", {"x", "a"}, {"y"}, {keep}), {i64("a", {1})}), expected);
}

TEST(Versions, ReduceWithEmptyAxes) {
  const Encoder noop = attribute("noop_with_empty_axes", int64_t{1});
  EXPECT_EQ(line_of_y(18, node("ReduceSum", "y", {"x"}, {"y"})), "y = ReduceSum(x)\n");
  EXPECT_EQ(line_of_y(18, node("ReduceSum", "y", {"x", "a"}, {"y"}), {i64("a", {})}), "y = ReduceSum(x)\n");
  EXPECT_EQ(line_of_y(18, node("ReduceSum", "y", {"x"}, {"y"}, {noop})), "y = Identity(x)\n");
  EXPECT_EQ(line_of_y(18, node("ReduceL2", "y", {"x"}, {"y"}, {noop})), "y = Abs(x)\n");
  EXPECT_EQ(line_of_y(18, node("ReduceSumSquare", "y", {"x"}, {"y"}, {noop})), "y = Mul(x, x)\n");
}

TEST(Versions, ClipBounds) {
  const std::string expected = "y = Clip(x, max=6.0, min=0.0)\n";
  EXPECT_EQ(line_of_y(7, node("Clip", "y", {"x"}, {"y"}, {attribute("min", 0.F), attribute("max", 6.F)})), expected);
  EXPECT_EQ(line_of_y(13, node("Clip", "y", {"x", "lo", "hi"}, {"y"}), {f32("lo", {}, {0}), f32("hi", {}, {6})}), expected);
  EXPECT_EQ(line_of_y(13, node("Clip", "y", {"x", "", "hi"}, {"y"}), {f32("hi", {}, {6})}), "y = Clip(x, max=6.0)\n");
}

TEST(Versions, SliceWritesOutWhatIsLeftOut) {
  const std::string expected = "y = Slice(x, axes=[0,1], ends=[2,3], starts=[0,1], steps=[1,1])\n";
  const std::vector<int64_t> starts = {0, 1}, ends = {2, 3};
  EXPECT_EQ(line_of_y(9, node("Slice", "y", {"x"}, {"y"}, {attribute("starts", starts), attribute("ends", ends)})), expected);
  EXPECT_EQ(line_of_y(13, node("Slice", "y", {"x", "s", "e"}, {"y"}), {i64("s", starts), i64("e", ends)}), expected);
}

TEST(Versions, Pad) {
  const std::vector<int64_t> pads = {0, 1, 0, 1};
  EXPECT_EQ(line_of_y(10, node("Pad", "y", {"x"}, {"y"}, {attribute("pads", pads), attribute("value", 2.F)})),
            "y = Pad(x, mode=constant, pads=[0,1,0,1], value=2.0)\n");
  EXPECT_EQ(line_of_y(13, node("Pad", "y", {"x", "p", "v"}, {"y"}), {i64("p", pads), f32("v", {}, {2})}),
            "y = Pad(x, mode=constant, pads=[0,1,0,1], value=2.0)\n");
  EXPECT_EQ(line_of_y(18, node("Pad", "y", {"x", "p", "", "a"}, {"y"}, {attribute("mode", "edge")}), {i64("p", {1, 1}), i64("a", {1})}),
            "y = Pad(x, axes=[1], mode=edge, pads=[1,1])\n");
}

TEST(Versions, SoftmaxOverOneAxisSinceOpset13) {
  EXPECT_EQ(line_of_y(13, node("Softmax", "y", {"x"}, {"y"}, {attribute("axis", int64_t{0})})), "y = Softmax(x, axis=0)\n");
  EXPECT_EQ(line_of_y(11, node("Softmax", "y", {"x"}, {"y"})), "y = Softmax(x, axis=-1)\n");  // axis 1 of 2: the last
}

TEST(Versions, SoftmaxOverAllAxesFromAxisOnBefore) {
  const auto graph = read(model(11, {{node("Softmax", "s", {"x"}, {"y"})}, {}, {value("x", {"n", "2", "3"})}, {value("y", {})}}));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->nodes(graph::Op::kFlatten).size(), 1U);
  ASSERT_EQ(graph->nodes(graph::Op::kSoftmax).size(), 1U);
  EXPECT_EQ(print(graph->value(graph->output(graph->nodes(graph::Op::kSoftmax)[0])).type), "f32[n,6]");
  EXPECT_EQ(print(graph->value(graph->outputs()[0]).type), "f32[n,2,3]");
}

TEST(Versions, Split) {
  const auto outputs_of = [](int64_t opset, const Encoder& split, const std::vector<Encoder>& constants) {
    const auto graph = read(model(opset, {{split}, constants, {value("x", {"n", "4"})}, {value("a", {}), value("b", {})}}));
    if (!graph) return graph.error().message;
    return print(graph->value(graph->outputs()[0]).type) + " " + print(graph->value(graph->outputs()[1]).type);
  };
  const Encoder axis = attribute("axis", int64_t{1});
  EXPECT_EQ(outputs_of(11, node("Split", "s", {"x"}, {"a", "b"}, {axis, attribute("split", std::vector<int64_t>{1, 3})}), {}),
            "f32[n,1] f32[n,3]");
  EXPECT_EQ(outputs_of(13, node("Split", "s", {"x", "k"}, {"a", "b"}, {axis}), {i64("k", {1, 3})}), "f32[n,1] f32[n,3]");
  EXPECT_EQ(outputs_of(18, node("Split", "s", {"x"}, {"a", "b"}, {axis, attribute("num_outputs", int64_t{2})}), {}), "f32[n,2] f32[n,2]");
  EXPECT_THAT(outputs_of(13, node("Split", "s", {"x", "k"}, {"a", "b"}, {axis}), {i64("k", {4})}),
              HasSubstr("splits into 1 parts, has 2 outputs"));
}

TEST(Versions, DropoutIsIdentityAtInferenceUnlessItsMaskIsWanted) {
  EXPECT_EQ(line_of_y(10, node("Dropout", "y", {"x"}, {"y"}, {attribute("ratio", 0.5F)})), "y = Identity(x)\n");
  EXPECT_EQ(line_of_y(13, node("Dropout", "y", {"x", "r"}, {"y"}), {f32("r", {}, {0.5F})}), "y = Identity(x)\n");
  EXPECT_THAT(line_of_y(13, node("Dropout", "y", {"x", "", "t"}, {"y"}), {tensor("t", 9, {}, "\x01")}), HasSubstr("= Dropout(x, _, t"));
  EXPECT_THAT(line_of_y(13, node("Dropout", "y", {"x"}, {"y", "mask"})), HasSubstr("y, mask = Dropout(x"));
  EXPECT_THAT(line_of_y(8, node("Dropout", "y", {"x"}, {"y", "mask"})), HasSubstr("was not bool before opset 10"));
}

TEST(Versions, BatchNormalizationForInferenceAndTraining) {
  const std::vector<Encoder> four = {f32("s", {4}), f32("b", {4}), f32("m", {4}), f32("v", {4})};
  const std::vector<std::string> inputs = {"x", "s", "b", "m", "v"};
  EXPECT_THAT(line_of_y(15, node("BatchNormalization", "y", inputs, {"y"}, {attribute("momentum", 0.9F)}), four),
              HasSubstr("y = BatchNormalization(x"));
  EXPECT_THAT(line_of_y(15, node("BatchNormalization", "y", inputs, {"y"}, {attribute("training_mode", int64_t{1})}), four),
              HasSubstr("= BatchNormalizationTraining(x"));
  EXPECT_THAT(line_of_y(9, node("BatchNormalization", "y", inputs, {"y", "mean"}), four),
              HasSubstr("y, mean, y:2 = BatchNormalizationTraining(x"));
  EXPECT_THAT(line_of_y(9, node("BatchNormalization", "y", inputs, {"y", "", "", "saved"}), four),
              HasSubstr("asks for the saved statistics"));
}

TEST(Versions, CastNamesTheDtype) {
  EXPECT_EQ(line_of_y(13, node("Cast", "y", {"x"}, {"y"}, {attribute("to", int64_t{7})})), "y = Cast(x, to=i64)\n");
  EXPECT_THAT(line_of_y(19, node("Cast", "y", {"x"}, {"y"}, {attribute("to", int64_t{17})})), HasSubstr("to=f8e4m3fn"));
}

TEST(Versions, AnOperatorThatTheOpsetDoesNotHaveYet) {
  EXPECT_THAT(line_of_y(19, node("Gelu", "y", {"x"}, {"y"})), HasSubstr("exists from opset 20 on, the model imports 19"));
}

TEST(Versions, AnAttributeThatNobodyKnowsIsNotIgnored) {
  EXPECT_THAT(line_of_y(13, node("Relu", "the_relu", {"x"}, {"y"}, {attribute("slope", 1.F)})),
              HasSubstr("node 'the_relu' (Relu): attribute 'slope'"));
}

TEST(Versions, M5OpsetsThatDoNotExist) {
  EXPECT_THAT(line_of_y(0, node("Relu", "y", {"x"}, {"y"})), HasSubstr("uses opset 0, which does not exist"));
  EXPECT_THAT(line_of_y(28, node("Relu", "y", {"x"}, {"y"})), HasSubstr("uses opset 28; 1 to 27 are read"));
}

TEST(Versions, ConstantsInAllForms) {
  const auto constant = [](const Encoder& attribute) {
    const auto graph = read(model(13, {{node("Constant", "c", {}, {"y"}, {attribute})}, {}, {}, {value("y", {})}}));
    return graph ? print(graph->value(graph->outputs()[0]).type) : graph.error().message;
  };
  EXPECT_EQ(constant(attribute("value_float", 1.5F)), "f32[]");
  EXPECT_EQ(constant(attribute("value_int", int64_t{3})), "i64[]");
  EXPECT_EQ(constant(attribute("value_ints", std::vector<int64_t>{3, 4})), "i64[2]");
  EXPECT_EQ(constant(tensor_attribute("value", f32("t", {2, 2}))), "f32[2,2]");
  EXPECT_THAT(constant(attribute("value_float", int64_t{3})), HasSubstr("not of its type"));
  EXPECT_THAT(constant(Encoder().bytes(1, "sparse_value").number(20, 11)), HasSubstr("attribute 'sparse_value' has no value"));
}

TEST(Inputs, WeightsDeclaredAsInputsAreConstants) {
  const auto graph = read(
      model(8, {{node("Add", "a", {"x", "w"}, {"y"})}, {f32("w", {4})}, {value("x", {"n", "4"}), value("w", {"4"})}, {value("y", {})}}));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->inputs().size(), 1U);
}

TEST(Inputs, WeightsThatRunsMayReplaceStayInputs) {
  const auto file = [](const std::vector<std::string>& declared) {
    return model(8, {{node("Mul", "m", {"x", "w"}, {"y"}), node("Add", "a", {"y", "v"}, {"z"})},
                     {f32("w", {4}), f32("v", {4})},
                     {value("x", {"n", "4"}), value("w", declared)},
                     {value("z", {})}});
  };
  const auto graph = read(file({"4"}), {}, {"w", "x"});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->inputs().size(), 2U);
  EXPECT_EQ(graph->value(graph->inputs()[1]).name, "w");
  EXPECT_FALSE(graph->constant(graph->inputs()[1]));
  ASSERT_EQ(graph->standard_inputs.size(), 1U) << "there is none of x";
  EXPECT_EQ(graph->standard_inputs.at("w")->span<float>()[3], 0.5F);

  EXPECT_TRUE(read(file({"k"}), {}, {"w"}));
  EXPECT_THAT(error_of(read(file({"3"}), {}, {"w"})), HasSubstr("input 'w' is declared f32[3], and its stored value is f32[4]"));
  EXPECT_THAT(error_of(read(file({"4", "1"}), {}, {"w"})), HasSubstr("is declared f32[4,1]"));
  EXPECT_THAT(error_of(read(file({"4"}), {}, {"v"})), HasSubstr("'v' is no input of the model: it is a value that the file stores"));
  EXPECT_THAT(error_of(read(file({"4"}), {}, {"u"})), ::testing::StrEq("'u' is no input of the model"));
}

TEST(Inputs, UnknownDimensionsGetNamesOfTheirOwn) {
  const auto graph = read(model(
      13, {{node("Identity", "i", {"x"}, {"y"})}, {}, {value("x", {"", "-1", "?", "a.b", "seq"}), value("z", {"a.b"})}, {value("y", {})}}));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(print(graph->value(graph->inputs()[0]).type), "f32[x_d0,x_d1,x_d2,a_b,seq]");
  EXPECT_EQ(print(graph->value(graph->inputs()[1]).type), "f32[a_b]");
}

TEST(Outputs, KeepTheirNames) {
  const auto graph =
      read(model(13, {{node("Relu", "r", {"x"}, {"scores"})}, {}, {value("x", {"n"})}, {value("scores", {}), value("x", {})}}));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(graph->output_names(), ::testing::ElementsAre("scores", "x"));
}

TEST(Bodies, CapturesComeBehindWhatALoopCarries) {
  const Encoder body = graph({{node("Add", "add", {"sum", "step"}, {"sum_out"}), node("Identity", "keep", {"go"}, {"go_out"}),
                               node("Mul", "scan", {"sum", "two"}, {"scanned"})},
                              {},
                              {value("i", {}, 7), value("go", {}, 9), value("sum", {"4"})},
                              {value("go_out", {}, 9), value("sum_out", {"4"}), value("scanned", {"4"})}});
  const auto graph = read(model(13, {{node("Relu", "r", {"x"}, {"step"}),
                                      node("Loop", "loop", {"trips", "", "start"}, {"y", "all"}, {graph_attribute("body", body)})},
                                     {i64("trips", {3}), f32("two", {})},
                                     {value("x", {"4"}), value("start", {"4"})},
                                     {value("y", {}), value("all", {})}}));
  ASSERT_TRUE(graph) << graph.error().message;
  const auto loops = graph->nodes(graph::Op::kLoop);
  ASSERT_EQ(loops.size(), 1U);
  const graph::Node& loop = graph->node(loops[0]);
  EXPECT_EQ(loop.integer("carried", -1), 1);
  ASSERT_EQ(loop.inputs.size(), 4U);  // trips, none, start, step; `two` is a constant of the body
  EXPECT_EQ(graph->value(loop.inputs[3]).name, "step");
  EXPECT_EQ(loop.bodies.at(0)->inputs().size(), 4U);
}

TEST(Bodies, UnsupportedNodesInBodiesAreNamedWithTheRest) {
  const auto branch = [](const char* op) { return graph({{node(op, std::string("in_") + op, {"x"}, {"r"})}, {}, {}, {value("r", {})}}); };
  const auto graph = read(model(
      13,
      {{node("If", "if", {"c"}, {"y"}, {graph_attribute("then_branch", branch("Frob")), graph_attribute("else_branch", branch("Nicate"))}),
        node("Last", "outside", {"y"}, {"z"})},
       {},
       {value("c", {}, 9), value("x", {"n"})},
       {value("z", {})}}));
  EXPECT_THAT(error_of(graph), HasSubstr("3 nodes use what is not supported: 'in_Frob' (Frob), 'in_Nicate' (Nicate), 'outside' (Last)"));
}

TEST(Unsupported, TwentyAreNamedAndTheRestCounted) {
  GraphParts parts{{}, {}, {value("x", {"n"})}, {value("x", {})}};
  for (int i = 0; i < 23; ++i) parts.nodes.push_back(node("Frob", "n" + std::to_string(i), {"x"}, {"y" + std::to_string(i)}));
  const std::string message = error_of(read(model(13, parts)));
  EXPECT_THAT(message, HasSubstr("23 nodes"));
  EXPECT_THAT(message, HasSubstr("'n19' (Frob) and 3 more"));
}

TEST(Versions, NodesThatTheFileDoesNotSort) {
  const std::vector<Encoder> nodes = {node("Neg", "last", {"b"}, {"y"}), node("Relu", "second", {"a"}, {"b"}),
                                      node("Abs", "first", {"x"}, {"a"})};
  const auto graph = read(model(13, {nodes, {}, {value("x", {"n", "4"})}, {value("y", {})}}));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_LT(print(*graph).find("Abs"), print(*graph).find("Relu"));
  EXPECT_LT(print(*graph).find("Relu"), print(*graph).find("Neg"));
}

TEST(Versions, NodesThatWaitForEachOther) {
  const std::vector<Encoder> nodes = {node("Add", "one", {"x", "b"}, {"a"}), node("Relu", "two", {"a"}, {"b"}),
                                      node("Neg", "y", {"x"}, {"y"})};
  const auto graph = read(model(13, {nodes, {}, {value("x", {"n", "4"})}, {value("y", {})}}));
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().message, "node 'one' (Add): reads 'b', which a later node (Relu) makes: the nodes form a cycle");
}

}  // namespace
}  // namespace serin::formats
