// The text form: what is printed can be parsed, and parses to what it was.

#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

std::string reprinted(std::string_view text) {
  auto graph = parse(dedent(text));
  return graph ? print(*graph) : graph.error().message;
}

TEST(Text, PrintsWhatItParsed) {
  const std::string text = dedent(R"(
    x: f32[n,3,8,8]
    mask: bool[n,2*seq + 1]
    c = Conv(x, w[4,3,3,3], b[4], pads=[1,1,1,1])
    a, b2 = Split(c, axis=1)
    r = Reshape(a, shape:i64[2]{0,-1})
    s = Mul(r, 0.5)
    t = Clip(s, _, high[]{6.0})
    "odd name" = Cast(t, to=f64)
    u = ConstantOfShape(i64{2,3}, value=i64{7})
    return "odd name", b2 as other, mask
  )");
  EXPECT_EQ(reprinted(text), text);
}

TEST(Text, LeavesOutWhatSaysNothing) {
  EXPECT_EQ(reprinted(R"(
    x: f32[n,3,8,8]
    y = Conv(x, w[4,3,3,3], group=1, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], auto_pad=NOTSET)  # noise
    return y
  )"),
            dedent(R"(
    x: f32[n,3,8,8]
    y = Conv(x, w[4,3,3,3])
    return y
  )"));
}

TEST(Text, NestsBodies) {
  const std::string text = dedent(R"(
    flag: bool[]
    x: f32[n]
    y = If(flag, x)
      then:
        x: f32[n]
        a = Relu(x)
        return a
      else:
        x: f32[n]
        return x
    z = Neg(y)
    return z
  )");
  EXPECT_EQ(reprinted(text), text);
}

TEST(Text, ShowsTypesAndProvenanceAsComments) {
  Graph graph = graph_of(R"(
    x: f32[n,4]
    y = Relu(x)
    return y
  )");
  graph.node(0).name = "fc1+relu1";
  EXPECT_EQ(print(graph, {.types = true, .names = true}), dedent(R"(
    x: f32[n,4]
    y = Relu(x)  # f32[n,4]  fc1+relu1
    return y
  )"));
}

TEST(Text, NamesThatExportersWrite) {
  const std::string text = dedent(R"(
    input.1: f32[1]
    /conv1/Conv_output_0 = Relu(input.1)
    onnx::Add_12 = Neg(/conv1/Conv_output_0)
    "12" = Abs(onnx::Add_12)
    "a,b" = Sqrt("12")
    return "a,b"
  )");
  EXPECT_EQ(reprinted(text), text);
}

TEST(Text, ValuesOfOneNameStayApart) {
  Graph graph;
  const ValueId a = graph.add_input("x", Type::tensor(DType::kFloat32, {1}));
  const ValueId b = graph.add_input("x", Type::tensor(DType::kFloat32, {1}));
  graph.set_outputs({graph.output(graph.add_node(Op::kSub, "y", {a, b}))});
  EXPECT_EQ(print(graph), "x: f32[1]\nx~2: f32[1]\ny = Sub(x, x~2)\nreturn y\n");
}

TEST(Text, RandomConstantsDependOnNameShapeAndSeed) {
  const std::string text = "y = Add(w[8], w2[8])\nz = Add(y, bn.var[8])\nreturn z\n";
  const auto constant = [&](uint64_t seed, const char* name) {
    const Graph graph = *parse(text, seed);
    for (size_t id = 0; id < graph.value_capacity(); ++id) {
      if (graph.value(static_cast<ValueId>(id)).name != name) continue;
      const auto span = graph.value(static_cast<ValueId>(id)).constant->span<float>();
      return std::vector<float>(span.begin(), span.end());
    }
    return std::vector<float>();
  };
  EXPECT_EQ(constant(1, "w"), constant(1, "w"));
  EXPECT_NE(constant(1, "w"), constant(2, "w"));
  EXPECT_NE(constant(1, "w"), constant(1, "w2"));
  for (const float variance : constant(1, "bn.var")) EXPECT_GE(variance, 0.5F);
}

TEST(Text, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(reprinted("x: f32[n]\ny = Frobnicate(x)\nreturn y"), "line 2: there is no operator 'Frobnicate'");
  EXPECT_EQ(reprinted("x: f32[n]\ny = Relu(z)\nreturn y"), "line 2: 'z' is not defined before it is read");
  EXPECT_EQ(reprinted("x: f33[n]\nreturn x"), "line 1: 'f33' is no dtype");
  EXPECT_EQ(reprinted("x: f32[n]\nx = Relu(x)\nreturn x"), "line 2: 'x' is defined twice");
  EXPECT_EQ(reprinted("x: f32[n]\ny = Relu(x)\n"), "line 3: expected a statement of this block, or 'return'");
  EXPECT_EQ(reprinted("y = Add(w[2], k:i64[2]{1})\nreturn y"), "line 1: 1 elements given for shape [2]");
}

TEST(Text, SurvivesAnyPrefixOfAText) {
  const std::string text = "x: f32[n,(2*m) + 1]\ny = If(c:bool[]{1}, \"x\")\n  then:\n    return k:i64[2]{0,-1} as z\nreturn y, 0.5\n";
  for (size_t length = 0; length < text.size(); ++length) {
    const auto graph = parse(text.substr(0, length));
    EXPECT_THAT(graph ? "line " : graph.error().message, ::testing::StartsWith("line "));
  }
}

}  // namespace
}  // namespace serin::graph
