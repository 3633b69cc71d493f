// Programs that contradict themselves, or that use what is not supported (rows M1 to M16 of bad input).

#include "runtime/formats/tensorflow/import.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include "runtime/formats/tensorflow/program.h"
#include "runtime/formats/tensorflow/proto.h"
#include "tests/runtime/formats/tensorflow/saved_model.h"

namespace serin::formats::tf {
namespace {

using namespace test;
using ::testing::AllOf;
using ::testing::HasSubstr;

Result<graph::Graph> read_bytes(std::string_view bytes) {
  const Folder folder;
  folder.write("saved_model.pb", bytes);
  return formats::read_saved_model(folder.file("saved_model.pb"));
}

TEST(BadSavedModel, ReadsTheModelThatTheOthersDamage) {
  const auto graph = read(model_of({{"y", "Relu", {"x"}, {}}}));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph::print(*graph), "x: f32[batch,4]\ny = Relu(x)\nreturn y\n");
}

TEST(BadSavedModel, M1NoRegularFiles) {
  const Folder folder;
  EXPECT_EQ(formats::read_saved_model(folder.file("saved_model.pb")).error().code, Code::kNotFound);
  folder.write("empty", "");
  EXPECT_THAT(formats::read_saved_model(folder.file("empty")).error().message, HasSubstr("an empty file"));
  EXPECT_EQ(formats::read_saved_model(folder.file("")).error().code, Code::kInvalidArgument);
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(formats::read_saved_model(folder.file("fifo")).error().code, Code::kInvalidArgument);
  ASSERT_EQ(::symlink("loop", folder.file("loop").c_str()), 0);
  EXPECT_FALSE(formats::read_saved_model(folder.file("loop")));
}

TEST(BadSavedModel, M3WireFormat) {
  EXPECT_EQ(read_bytes(std::string("\x12\xff\xff\xff\xff\x0f", 6)).error().code, Code::kCorrupt);
  EXPECT_EQ(read_bytes(std::string(11, '\xff')).error().code, Code::kCorrupt);
  EXPECT_EQ(read_bytes(std::string("\x0b", 1)).error().code, Code::kCorrupt);
  Model twice = model_of({{"y", "Relu", {"x"}, {}}});
  std::string program = twice.proto();
  EXPECT_TRUE(read_bytes(program + std::string("\x78\x01", 2))) << "unknown fields are skipped";
  twice.nodes[1].name = "\xff\xfe";
  EXPECT_THAT(error_of(twice), HasSubstr("not UTF-8"));
}

TEST(BadSavedModel, M4OtherFiles) {
  EXPECT_THAT(read_bytes("<!DOCTYPE html><html>404</html>").error().message, HasSubstr("an HTML page"));
  EXPECT_THAT(read_bytes("version https://git-lfs.github.com/spec/v1\noid sha256:0\n").error().message, HasSubstr("Git LFS"));
  EXPECT_THAT(read_bytes(std::string("PK\x03\x04", 4) + "config.json").error().message, HasSubstr("Keras"));
  EXPECT_THAT(read_bytes(std::string("\x80\x04\x95", 3)).error().message, HasSubstr("pickle"));
}

TEST(BadSavedModel, M5NamesAllUnsupportedNodes) {
  Model model = model_of(
      {{"a", "Frobnicate", {"x"}, {}}, {"call", "PartitionedCall", {"a"}, {{"f", attr_function("inner")}}}, {"y", "Relu", {"call"}, {}}});
  model.functions = {{"inner", {"p"}, {{"py", "PyFunc", {"p"}, {}}, {"loop", "Enter", {"py:output:0"}, {}}}, {{"r", "loop:output:0"}}}};
  EXPECT_THAT(error_of(model), AllOf(HasSubstr("3 nodes"), HasSubstr("'a' (Frobnicate)"), HasSubstr("'py' (PyFunc, which calls Python)"),
                                     HasSubstr("control flow v2")));
}

TEST(BadSavedModel, M5Signatures) {
  Model model = model_of({{"y", "Relu", {"x"}, {}}});
  model.signature = "classify";
  EXPECT_TRUE(read(model)) << "the only one";
  model.signature = "__saved_model_init_op";
  EXPECT_THAT(error_of(model), HasSubstr("has no signature"));
  model.signature = "serving_default";
  model.inputs[0].dtype = 8;  // complex
  EXPECT_THAT(error_of(model), HasSubstr("input 'x' has dtype 8"));
  model.inputs[0] = {"x", "", 1, {4}};
  EXPECT_THAT(error_of(model), HasSubstr("sparse or composite"));
  model.inputs.clear();
  EXPECT_THAT(error_of(model), HasSubstr("no input of the signature"));
  model.outputs.clear();
  EXPECT_THAT(error_of(model), HasSubstr("no outputs"));
}

TEST(BadSavedModel, M6Graphs) {
  EXPECT_THAT(error_of(model_of({{"y", "Relu", {"z"}, {}}})), HasSubstr("'z' does not exist"));
  EXPECT_THAT(error_of(model_of({{"y", "Relu", {"x:3"}, {}}})), HasSubstr("output"));
  EXPECT_THAT(error_of(model_of({{"y", "Relu", {"x:99999999999999999999"}, {}}})), HasSubstr("output"));
  EXPECT_THAT(error_of(model_of({{"y", "Relu", {"z"}, {}}, {"z", "Relu", {"y"}, {}}})), HasSubstr("depends on itself"));
  EXPECT_THAT(error_of(model_of({{"y", "Relu", {"x"}, {}}, {"y", "Neg", {"x"}, {}}})), HasSubstr("two nodes 'y'"));
  EXPECT_THAT(error_of(model_of({{"y", "Relu", {"x", "x"}, {}}})), HasSubstr("2 operands"));
  EXPECT_THAT(error_of(model_of({{"y", "Relu", {}, {}}})), HasSubstr("0 operands"));
  EXPECT_THAT(error_of(model_of({{"y", "PartitionedCall", {"x"}, {{"f", attr_function("gone")}}}})), HasSubstr("'gone' does not exist"));
  EXPECT_THAT(error_of(model_of({{"y", "PartitionedCall", {"x"}, {}}})), HasSubstr("names no function"));
}

TEST(BadSavedModel, M6FunctionsThatCallThemselves) {
  Model model = model_of({{"y", "PartitionedCall", {"x"}, {{"f", attr_function("a")}}}});
  model.functions = {{"a", {"p"}, {{"n", "PartitionedCall", {"p"}, {{"f", attr_function("b")}}}}, {{"r", "n:output:0"}}},
                     {"b", {"p"}, {{"n", "PartitionedCall", {"p"}, {{"f", attr_function("a")}}}}, {{"r", "n:output:0"}}}};
  EXPECT_THAT(error_of(model), HasSubstr("calls deep"));
  model.restore_op = "y";  // a restore operation that never ends
  EXPECT_THAT(error_of(model), HasSubstr("calls itself"));
  model.restore_op.clear();
  model.functions.push_back(model.functions[0]);
  EXPECT_THAT(error_of(model), HasSubstr("two functions 'a'"));
}

/// Each function calls the next twice: 2^40 nodes in a small file.
TEST(BadSavedModel, M6FunctionsThatGrow) {
  Model model = model_of({{"y", "PartitionedCall", {"x"}, {{"f", attr_function("f0")}}}});
  for (int i = 0; i < 40; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    model.functions.push_back({"f" + std::to_string(i),
                               {"p"},
                               {{"n", "PartitionedCall", {"p"}, {{"f", attr_function(next)}}},
                                {"m", "PartitionedCall", {"n:output:0"}, {{"f", attr_function(next)}}}},
                               {{"r", "m:output:0"}}});
  }
  model.functions.push_back({"f40", {"p"}, {{"n", "Relu", {"p"}, {}}}, {{"r", "n:activations:0"}}});
  EXPECT_THAT(error_of(model, {.file_bytes = 1 << 20, .nodes = 1000, .nesting = 64}), HasSubstr("more than 1000 nodes"));
}

TEST(BadSavedModel, M6AChainThatNoStackWouldHold) {
  std::vector<Node> nodes;
  for (int i = 0; i < 100'000; ++i)
    nodes.push_back({"n" + std::to_string(i), "Identity", {i == 0 ? "x" : "n" + std::to_string(i - 1)}, {}});
  nodes.push_back({"y", "Relu", {"n99999"}, {}});
  const auto graph = read(model_of(nodes));
  EXPECT_TRUE(graph) << graph.error().message;
}

TEST(BadSavedModel, M7Constants) {
  const auto with = [](const std::string& tensor) { return error_of(model_of({constant("c", 1, tensor), {"y", "Add", {"x", "c"}, {}}})); };
  EXPECT_THAT(with(tensor_proto<float>(1, {4}, {1, 2})), HasSubstr("16 bytes has 8"));
  EXPECT_THAT(with(tensor_proto<float>(1, {-4}, {1, 2, 3, 4})), HasSubstr("shape [-4]"));
  EXPECT_THAT(with(tensor_proto<float>(1, {1LL << 40, 1LL << 40}, {1})), HasSubstr("shape"));
  EXPECT_THAT(with(tensor_proto<float>(1, {1LL << 33}, {})), HasSubstr("of which the file has 0"));
  EXPECT_THAT(with(tensor_proto<float>(8, {1}, {1, 2})), HasSubstr("dtype 8"));
  EXPECT_THAT(with(tensor_proto<float>(1, Shape(1000, 1), {1})), HasSubstr("rank 1000"));
  EXPECT_THAT(error_of(model_of({{"y", "Const", {}, {}}})), HasSubstr("no value"));
}

TEST(BadSavedModel, M9Attributes) {
  const std::vector<float> filter(36, 1.0F);
  const auto convolution = [&](std::map<std::string, std::string> attrs, const Shape& shape) {
    Model model = model_of({floats("w", shape, filter), {"y", "Conv2D", {"x", "w"}, std::move(attrs)}});
    model.inputs[0].shape = {-1, 8, 8, 4};
    return error_of(model);
  };
  const std::string same = attr_text("SAME"), ones = attr_ints({1, 1, 1, 1});
  EXPECT_THAT(convolution({{"padding", same}, {"strides", attr_ints({1, 0, 0, 1})}}, {3, 3, 4, 1}), HasSubstr("strides is [1,0,0,1]"));
  EXPECT_THAT(convolution({{"padding", same}, {"strides", attr_ints({1, 1})}}, {3, 3, 4, 1}), HasSubstr("strides is [1,1]"));
  EXPECT_THAT(convolution({{"padding", same}, {"strides", attr_ints({2, 1, 1, 1})}}, {3, 3, 4, 1}), HasSubstr("strides is [2,1,1,1]"));
  EXPECT_THAT(convolution({{"padding", attr_text("WIDE")}, {"strides", ones}}, {3, 3, 4, 1}), HasSubstr("padding is 'WIDE'"));
  EXPECT_THAT(convolution({{"padding", attr_text("EXPLICIT")}, {"strides", ones}, {"explicit_paddings", attr_ints({-1})}}, {3, 3, 4, 1}),
              HasSubstr("explicit paddings"));
  EXPECT_THAT(convolution({{"padding", same}, {"strides", ones}}, {3, 4, 3, 1}), HasSubstr("channels that do not fit"));
  EXPECT_THAT(convolution({{"padding", same}, {"strides", ones}}, {9, 4}), HasSubstr("rank"));
  EXPECT_THAT(error_of(model_of({integers("axis", {7}), {"y", "Mean", {"x", "axis"}, {}}})), HasSubstr("axis 7"));
  EXPECT_THAT(error_of(model_of({integers("order", {0, 0}), {"y", "Transpose", {"x", "order"}, {}}})), HasSubstr("perm"));
  EXPECT_THAT(error_of(model_of({integers("shape", {-1, -1}), {"y", "Reshape", {"x", "shape"}, {}}})), HasSubstr("node 'y'"));
  EXPECT_THAT(error_of(model_of({integers("axis", {1}), {"y", "Split", {"axis", "x"}, {{"num_split", attr_int(3)}}}})),
              HasSubstr("parts of unknown size"));
  EXPECT_THAT(error_of(model_of({integers("axis", {1}), {"y", "Split", {"axis", "x"}, {{"num_split", attr_int(1LL << 40)}}}})),
              HasSubstr("parts"));
}

TEST(BadSavedModel, M10ShapesThatContradictEachOther) {
  EXPECT_THAT(error_of(model_of({floats("w", {5, 2}, std::vector<float>(10, 1)), {"y", "MatMul", {"x", "w"}, {}}})), HasSubstr("node 'y'"));
  EXPECT_THAT(error_of(model_of({floats("w", {3}, {1, 2, 3}), {"y", "Add", {"x", "w"}, {}}})), HasSubstr("node 'y'"));
}

/// There are no quantised types here: whatever their scales are, the nodes and types are refused by name.
TEST(BadSavedModel, M11QuantisedTypesAndOperators) {
  const Node range = floats("low", {}, {0}), high = floats("high", {}, {std::numeric_limits<float>::quiet_NaN()});
  const std::string error = error_of(model_of({range,
                                               high,
                                               {"q", "QuantizeV2", {"x", "low", "high"}, {{"T", attr_type(11)}}},
                                               {"y", "Dequantize", {"q", "q:1", "q:2"}, {{"T", attr_type(11)}}}}));
  EXPECT_THAT(error, AllOf(HasSubstr("2 nodes"), HasSubstr("'q' (QuantizeV2)"), HasSubstr("'y' (Dequantize)")));
  EXPECT_THAT(error_of(model_of({range, high, {"y", "FakeQuantWithMinMaxVars", {"x", "low", "high"}, {{"num_bits", attr_int(99)}}}})),
              HasSubstr("'y' (FakeQuantWithMinMaxVars)"));
  EXPECT_THAT(error_of(model_of({constant("c", 11, tensor_proto<int8_t>(11, {4}, {1, 2, 3, 4})), {"y", "Add", {"x", "c"}, {}}})),
              HasSubstr("dtype 11"));
  Model variable = model_with_variable();
  variable.files[kIndex] = table_of({{"", header_proto()}, {"w", entry_proto(11, {16}, 0, 16, checksum(variable.files[kData]))}});
  EXPECT_THAT(error_of(variable), HasSubstr("weight 'w': has dtype 11"));
}

TEST(BadSavedModel, M12ComputeBombs) {
  const Node sizes = integers("sizes", {2'000'000'000, 2'000'000'000});
  EXPECT_THAT(error_of(model_of({sizes, floats("one", {}, {1}), {"y", "Fill", {"sizes", "one"}, {}}})), HasSubstr("node 'y'"));
  EXPECT_THAT(error_of(model_of({sizes, floats("one", {1, 1}, {1}), {"y", "Tile", {"one", "sizes"}, {}}})), HasSubstr("node 'y'"));
}

TEST(BadSavedModel, M9Loops) {
  const auto loop = [](const Function& body, const Function& cond) {
    Model model = model_of({{"y", "While", {"x"}, {{"body", attr_function("body")}, {"cond", attr_function("cond")}}}});
    model.functions = {body, cond};
    return error_of(model);
  };
  const Function body{"body", {"p"}, {{"n", "Relu", {"p"}, {}}}, {{"r", "n:activations:0"}}};
  const Function cond{"cond", {"p"}, {{"n", "IsFinite", {"p"}, {}}}, {{"r", "n:y:0"}}};
  EXPECT_THAT(loop({"other", {"p"}, {}, {{"r", "p"}}}, cond), HasSubstr("functions are missing"));
  EXPECT_THAT(loop({"body", {"p", "q"}, {}, {{"r", "p"}}}, cond), HasSubstr("do not fit"));
  EXPECT_THAT(loop(body, {"cond", {"p"}, {}, {}}), HasSubstr("do not fit"));
  EXPECT_THAT(loop({"body", {"p"}, {{"n", "Relu", {"gone"}, {}}}, {{"r", "n:activations:0"}}}, cond), HasSubstr("'gone' does not exist"));
}

}  // namespace
}  // namespace serin::formats::tf
