// Functions that a file defines become their nodes: scopes, attributes, operator sets, and what must not be expanded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/formats/onnx/encode.h"

namespace serin::formats {
namespace {

using ::testing::HasSubstr;

struct FunctionParts {
  std::string name;
  std::vector<std::string> inputs, outputs;
  std::vector<Encoder> nodes;
  std::vector<std::string> attributes = {};  // without defaults
  std::vector<Encoder> defaults = {};
  int64_t opset = 13;
  std::string overload = "";
};

Encoder function(const FunctionParts& parts) {
  Encoder out;
  out.bytes(1, parts.name).bytes(10, "my");
  for (const auto& input : parts.inputs) out.bytes(4, input);
  for (const auto& output : parts.outputs) out.bytes(5, output);
  for (const auto& attribute : parts.attributes) out.bytes(6, attribute);
  for (const auto& node : parts.nodes) out.message(7, node);
  for (const auto& value : parts.defaults) out.message(11, value);
  if (!parts.overload.empty()) out.bytes(13, parts.overload);
  return out.message(9, Encoder().number(2, parts.opset)).message(9, Encoder().bytes(1, "my").number(2, 1));
}

/// A node of the domain that the functions are in.
Encoder call(std::string_view op, std::string_view name, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
             const std::vector<Encoder>& attributes = {}) {
  return node(op, name, inputs, outputs, attributes).bytes(7, "my");
}

Encoder reference(std::string_view name, std::string_view to, int64_t type) {
  return Encoder().bytes(1, name).number(20, type).bytes(21, to);
}
constexpr int64_t kFloat = 1, kInt = 2;

/// The graph of a model of these nodes over x: f32[n,4], with output y, as text.
std::string expanded(const std::vector<Encoder>& nodes, const std::vector<FunctionParts>& functions, const OnnxLimits& limits = {}) {
  Encoder file = model(13, {nodes, {}, {value("x", {"n", "4"})}, {value("y", {})}});
  file.message(8, Encoder().bytes(1, "my").number(2, 1));
  for (const FunctionParts& parts : functions) file.message(25, function(parts));
  const auto graph = read(file, limits);
  if (!graph) return graph.error().message;
  const std::string text = print(*graph);
  return text.substr(text.find('\n') + 1);
}

const FunctionParts kDouble{.name = "Double", .inputs = {"a"}, .outputs = {"b"}, .nodes = {node("Add", "add", {"a", "a"}, {"b"})}};

TEST(Functions, ACallIsItsNodes) { EXPECT_EQ(expanded({call("Double", "d", {"x"}, {"y"})}, {kDouble}), "y = Add(x, x)\nreturn y\n"); }

TEST(Functions, EachCallHasNamesOfItsOwn) {
  const FunctionParts steps{
      .name = "Steps", .inputs = {"x"}, .outputs = {"y"}, .nodes = {node("Relu", "", {"x"}, {"t"}), node("Neg", "", {"t"}, {"y"})}};
  const std::string text = expanded({call("Steps", "one", {"x"}, {"t"}), call("Steps", "two", {"t"}, {"y"})}, {steps});
  EXPECT_EQ(text, "one/t = Relu(x)\nt = Neg(one/t)\ntwo/t = Relu(t)\ny = Neg(two/t)\nreturn y\n");
}

TEST(Functions, WithinFunctions) {
  const FunctionParts four{.name = "Four",
                           .inputs = {"p"},
                           .outputs = {"q"},
                           .nodes = {call("Double", "one", {"p"}, {"m"}), call("Double", "two", {"m"}, {"q"})}};
  EXPECT_THAT(expanded({call("Four", "f", {"x"}, {"y"})}, {four, kDouble}), HasSubstr("y = Add("));
}

TEST(Functions, AttributesOfTheCallOrTheirDefaultsOrTheOperators) {
  const FunctionParts leaky{.name = "Leaky",
                            .inputs = {"a"},
                            .outputs = {"b"},
                            .nodes = {node("LeakyRelu", "", {"a"}, {"c"}, {reference("alpha", "slope", kFloat)}),
                                      node("Elu", "", {"c"}, {"b"}, {reference("alpha", "steep", kFloat)})},
                            .attributes = {"slope"},
                            .defaults = {attribute("steep", 0.5F)}};
  EXPECT_THAT(expanded({call("Leaky", "l", {"x"}, {"y"}, {attribute("slope", 0.25F)})}, {leaky}),
              ::testing::AllOf(HasSubstr("LeakyRelu(x, alpha=0.25)"), HasSubstr("alpha=0.5)")));
  EXPECT_THAT(expanded({call("Leaky", "l", {"x"}, {"y"}, {attribute("steep", 0.125F)})}, {leaky}), HasSubstr("alpha=0.125)"));
  EXPECT_THAT(expanded({call("Leaky", "l", {"x"}, {"y"})}, {leaky}), HasSubstr("= LeakyRelu(x)\n"));
  EXPECT_THAT(expanded({call("Leaky", "l", {"x"}, {"y"}, {attribute("slope", int64_t{1})})}, {leaky}), HasSubstr("is of another type"));
  EXPECT_THAT(expanded({call("Leaky", "l", {"x"}, {"y"}, {attribute("slop", 1.F)})}, {leaky}),
              HasSubstr("attribute 'slop' is not one of the function"));
}

TEST(Functions, AttributesReachBodiesWithinThem) {
  const Encoder then_branch =
      graph({{node("LeakyRelu", "", {"a"}, {"r"}, {reference("alpha", "slope", kFloat)})}, {}, {}, {value("r", {})}});
  const Encoder else_branch = graph({{node("Neg", "", {"a"}, {"r"})}, {}, {}, {value("r", {})}});
  const FunctionParts choose{
      .name = "Choose",
      .inputs = {"a"},
      .outputs = {"b"},
      .nodes = {node("ReduceMax", "", {"a"}, {"m"}, {attribute("keepdims", int64_t{0})}),
                node("Cast", "", {"m"}, {"c"}, {attribute("to", int64_t{9})}),
                node("If", "if", {"c"}, {"b"}, {graph_attribute("then_branch", then_branch), graph_attribute("else_branch", else_branch)})},
      .attributes = {"slope"}};
  EXPECT_THAT(expanded({call("Choose", "c", {"x"}, {"y"}, {attribute("slope", 0.25F)})}, {choose}), HasSubstr("alpha=0.25"));
}

TEST(Functions, InputsThatTheCallLeavesOut) {
  const FunctionParts clip{
      .name = "Bound", .inputs = {"a", "low", "high"}, .outputs = {"b"}, .nodes = {node("Clip", "", {"a", "low", "high"}, {"b"})}};
  EXPECT_EQ(expanded({call("Bound", "c", {"x"}, {"y"})}, {clip}), "y = Clip(x)\nreturn y\n");
  EXPECT_THAT(expanded({call("Bound", "c", {"x", "x", "x", "x"}, {"y"})}, {clip}), HasSubstr("has 4 inputs, the function takes 3"));
}

TEST(Functions, AnInputHandedBackIsAValueOfItsOwn) {
  const FunctionParts same{.name = "Same", .inputs = {"a"}, .outputs = {"a"}, .nodes = {}};
  EXPECT_EQ(expanded({call("Same", "s", {"x"}, {"y"})}, {same}), "y = Identity(x)\nreturn y\n");
}

TEST(Functions, OperatorSetsOfTheirOwn) {
  FunctionParts squeeze{.name = "Rows",
                        .inputs = {"a"},
                        .outputs = {"b"},
                        .nodes = {node("Unsqueeze", "", {"a"}, {"b"}, {attribute("axes", std::vector<int64_t>{0})})},
                        .opset = 11};
  EXPECT_THAT(expanded({call("Rows", "r", {"x"}, {"y"})}, {squeeze}), HasSubstr("Unsqueeze(x, axes=[0])"));
  squeeze.opset = 28;
  EXPECT_THAT(expanded({call("Rows", "r", {"x"}, {"y"})}, {squeeze}), HasSubstr("'r' (my.Rows: a function written in opset 28)"));
}

TEST(Functions, OverloadsAreToldApart) {
  FunctionParts negated = kDouble;
  negated.overload = "negated";
  negated.nodes = {node("Neg", "", {"a"}, {"b"})};
  EXPECT_EQ(expanded({call("Double", "d", {"x"}, {"y"}).bytes(8, "negated")}, {kDouble, negated}), "y = Neg(x)\nreturn y\n");
  EXPECT_EQ(expanded({call("Double", "d", {"x"}, {"y"})}, {kDouble, negated}), "y = Add(x, x)\nreturn y\n");
  EXPECT_THAT(expanded({call("Double", "d", {"x"}, {"y"})}, {kDouble, kDouble}), HasSubstr("function 'Double' is defined twice"));
}

TEST(Functions, ConstantsOfOneAreSharedByItsCalls) {
  const FunctionParts plus{.name = "Plus",
                           .inputs = {"a"},
                           .outputs = {"b"},
                           .nodes = {node("Constant", "", {}, {"c"}, {tensor_attribute("value", f32("t", {4}, {1, 2, 3, 4}))}),
                                     node("Add", "", {"a", "c"}, {"b"})}};
  Encoder file = model(13, {{call("Plus", "p", {"x"}, {"t"}), call("Plus", "q", {"t"}, {"y"})}, {}, {value("x", {"4"})}, {value("y", {})}});
  const auto graph = read(file.message(25, function(plus)));
  ASSERT_TRUE(graph) << graph.error().message;
  const auto adds = graph->nodes(graph::Op::kAdd);
  ASSERT_EQ(adds.size(), 2U);
  const auto first = graph->constant(graph->input(adds[0], 1)), second = graph->constant(graph->input(adds[1], 1));
  EXPECT_EQ(first, second);
  EXPECT_EQ(second->span<float>()[3], 4.F);
}

TEST(Functions, UnsupportedNodesInThemAreNamedWithTheRest) {
  const FunctionParts odd{.name = "Odd", .inputs = {"a"}, .outputs = {"b"}, .nodes = {node("Frob", "frob", {"a"}, {"b"})}};
  EXPECT_THAT(expanded({call("Odd", "o", {"x"}, {"t"}), call("Nicate", "n", {"t"}, {"y"})}, {odd}),
              HasSubstr("2 nodes use what is not supported: 'o/frob' (Frob), 'n' (my.Nicate)"));
}

TEST(Functions, M6SelfRecursionCve202223591) {
  const FunctionParts self{.name = "Self", .inputs = {"a"}, .outputs = {"b"}, .nodes = {call("Self", "again", {"a"}, {"b"})}};
  EXPECT_THAT(expanded({call("Self", "s", {"x"}, {"y"})}, {self}), HasSubstr("a function calls itself: my.Self -> my.Self"));
}

TEST(Functions, M6MutualRecursion) {
  const FunctionParts ping{.name = "Ping", .inputs = {"a"}, .outputs = {"b"}, .nodes = {call("Pong", "", {"a"}, {"b"})}};
  const FunctionParts pong{.name = "Pong", .inputs = {"a"}, .outputs = {"b"}, .nodes = {call("Ping", "", {"a"}, {"b"})}};
  EXPECT_THAT(expanded({call("Ping", "p", {"x"}, {"y"})}, {ping, pong}), HasSubstr("my.Ping -> my.Pong -> my.Ping"));
}

TEST(Functions, M6EachCallingTheNextTwiceHitsTheLimitOfNodes) {
  std::vector<FunctionParts> functions = {kDouble};
  for (int i = 0; i < 40; ++i) {
    const std::string inner = i == 0 ? "Double" : "F" + std::to_string(i - 1);
    functions.push_back({.name = "F" + std::to_string(i),
                         .inputs = {"a"},
                         .outputs = {"b"},
                         .nodes = {call(inner, "", {"a"}, {"m"}), call(inner, "", {"m"}, {"b"})}});
  }
  EXPECT_THAT(expanded({call("F39", "f", {"x"}, {"y"})}, functions, {.nodes = 10'000}), HasSubstr("more than 10000 nodes"));
}

TEST(Functions, M6ChainsDeeperThanTheLimit) {
  std::vector<FunctionParts> functions = {kDouble};
  for (int i = 0; i < 100; ++i)
    functions.push_back({.name = "F" + std::to_string(i),
                         .inputs = {"a"},
                         .outputs = {"b"},
                         .nodes = {call(i == 0 ? "Double" : "F" + std::to_string(i - 1), "", {"a"}, {"b"})}});
  EXPECT_THAT(expanded({call("F99", "f", {"x"}, {"y"})}, functions), HasSubstr("within each other, more than 65 deep"));
}

TEST(Functions, M9ReferencesThatLeadNowhere) {
  const FunctionParts lost{.name = "Lost",
                           .inputs = {"a"},
                           .outputs = {"b"},
                           .nodes = {node("Elu", "elu", {"a"}, {"b"}, {reference("alpha", "slope", kFloat)})}};
  EXPECT_THAT(expanded({call("Lost", "l", {"x"}, {"y"})}, {lost}),
              HasSubstr("refers to attribute 'slope' of the function, which there is not"));
  EXPECT_THAT(expanded({node("Elu", "e", {"x"}, {"y"}, {reference("alpha", "slope", kFloat)})}, {}), HasSubstr("this is none"));
  const FunctionParts axis{.name = "Axis",
                           .inputs = {"a"},
                           .outputs = {"c"},
                           .nodes = {node("Elu", "", {"a"}, {"b"}, {reference("alpha", "k", kInt)})},
                           .attributes = {"k"}};
  EXPECT_THAT(expanded({call("Axis", "a", {"x"}, {"y"})}, {axis}), HasSubstr("output 'c' of the function is not made by any node"));
}

}  // namespace
}  // namespace serin::formats
