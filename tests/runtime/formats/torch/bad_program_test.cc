// Programs with a flaw (M3 to M12), and writes into tensors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/formats/torch/archive.h"

namespace serin::formats::torch_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(const Result<graph::Graph>& graph) { return graph ? "it was read:\n" + print(*graph) : graph.error().message; }

const std::string kX = tensor("x");
std::string ints(const std::string& list) { return fmt::format(R"({{"as_ints": [{}]}})", list); }
std::string integer(int64_t value) { return fmt::format(R"({{"as_int": {}}})", value); }

std::string error_of_node(const std::string& target, const std::vector<std::pair<std::string, std::string>>& arguments) {
  return error_of(read(TestProgram{{node("y", target, arguments)}}));
}

TEST(TorchProgram, M3_IsNoJson) {
  for (const char* text : {"", "{", "[1, 2", "{\"a\": 1, \"a\": 2}", "nul", "{} {}", "\"\\x\"", "{\"a\": 01}", "[1,]"})
    EXPECT_THAT(error_of(read(files_of(text))), HasSubstr("model.pt2: JSON")) << text;
  EXPECT_THAT(error_of(read(files_of(std::string(200'000, '[')))), HasSubstr("nested more than"));
  EXPECT_THAT(error_of(read(files_of("{}"))), HasSubstr("schema"));
}

TEST(TorchProgram, M5_NamesVersionsAndAllUnknownOperators) {
  EXPECT_THAT(error_of(read(TestProgram{.nodes = {kAdd}, .version = R"({"major": 9})"})), HasSubstr("schema 9"));
  const std::string error = error_of(read(TestProgram{{node("a", "frobnicate.default", {}), node("y", "wobble.out", {})}}));
  EXPECT_THAT(error, AllOf(HasSubstr("2 nodes use operators"), HasSubstr("'a' (torch.ops.aten.frobnicate.default)"),
                           HasSubstr("'y' (torch.ops.aten.wobble.out)")));
}

TEST(TorchProgram, M6_BrokenGraphs) {
  const std::string relu = node("y", "relu.default", {{"self", tensor("y")}});
  EXPECT_THAT(error_of(read(TestProgram{{relu}})), HasSubstr("reads 'y', which nothing before it makes"));
  EXPECT_THAT(error_of(read(TestProgram{{kAdd, kAdd}})), HasSubstr("two nodes make 'y'"));
  EXPECT_THAT(error_of(read(TestProgram{.nodes = {kAdd}, .output = "z"})), HasSubstr("returns 'z'"));
  EXPECT_THAT(error_of(read(TestProgram{.nodes = {}, .output = "z"})), HasSubstr("returns 'z'"));
  const std::string mutation = fmt::format(R"({{"buffer_mutation": {{"arg": {{"name": "y"}}, "buffer_name": "count"}}}})");
  EXPECT_THAT(error_of(read(TestProgram{.nodes = {kAdd}, .output_spec = mutation})), HasSubstr("a program with state"));
}

TEST(TorchProgram, M7_BrokenWeights) {
  const std::string program = TestProgram{{kAdd}}.json();
  const auto says = [&](const std::string& row, size_t bytes = 24) { return error_of(read(files_of(program, row, bytes))); };
  EXPECT_THAT(says(weight_row(), 20), HasSubstr("needs 6 elements"));
  EXPECT_THAT(says(weight_row(meta(sizes({1LL << 40, 1LL << 40}), 7, sizes({1, 1})))), HasSubstr("too many elements"));
  EXPECT_THAT(says(weight_row(meta(sizes({0, 1LL << 40, 1LL << 40}), 7, sizes({0, 0, 1})))), HasSubstr("too many elements"));
  EXPECT_THAT(says(weight_row(meta(sizes({-2, 3}), 7, sizes({3, 1})))), HasSubstr("size -2"));
  EXPECT_THAT(says(weight_row(meta(sizes({2, 3}), 99, sizes({3, 1})))), HasSubstr("type 99"));
  EXPECT_THAT(says(weight_row(meta(sizes({2, 3}), 7, sizes({3})))), HasSubstr("strides"));
  EXPECT_THAT(says(weight_row(meta(sizes({2, 3}), 7, sizes({1LL << 60, 1})))), HasSubstr("stride"));
  EXPECT_THAT(says(weight_row(meta(sizes({2, 3}), 7, sizes({-3, 1})))), HasSubstr("stride"));
  EXPECT_THAT(says(weight_row(meta(sizes(std::vector<int64_t>(1000, 1)), 7))), HasSubstr("rank 1000"));
  EXPECT_THAT(says(weight_row(meta(sizes({1LL << 34}), 7, sizes({0})))), HasSubstr("repeats its elements"));
  EXPECT_THAT(says(weight_row(meta(sizes({2, 3}), 7, sizes({3, 1})), "weight_0", "true")), HasSubstr("pickle"));
  EXPECT_THAT(says(weight_row(meta(sizes({2, 3}), 7, sizes({3, 1})), "../../../etc/passwd")), HasSubstr("not in the archive"));  // M8
  EXPECT_THAT(says(R"({"config": {}})"), HasSubstr("weight 'layer.w' is not in the archive"));
}

TEST(TorchProgram, WeightsMayBeTransposed) {
  const TestProgram program{{kAdd}};
  std::vector<ZipFile> files = files_of(program.json(), weight_row(meta(sizes({2, 3}), 7, sizes({1, 2}))));
  const float values[] = {0, 1, 2, 3, 4, 5};
  files[3].content.assign(reinterpret_cast<const char*>(values), sizeof values);
  const auto graph = read(files);
  ASSERT_TRUE(graph) << graph.error().message;
  for (size_t id = 0; id < graph->value_capacity(); ++id)
    if (const auto constant = graph->value(static_cast<graph::ValueId>(id)).constant) {
      EXPECT_THAT(constant->span<float>(), ::testing::ElementsAre(0, 2, 4, 1, 3, 5));
    }
}

TEST(TorchProgram, M9_BrokenArguments) {
  EXPECT_THAT(error_of_node("relu.default", {}), HasSubstr("has no tensor 'self'"));
  EXPECT_THAT(error_of_node("as_strided.default", {{"size", ints("2, 3")}, {"stride", ints("3, 1")}}), HasSubstr("has no tensor 'self'"));
  EXPECT_THAT(error_of_node("relu.default", {{"self", integer(3)}}), HasSubstr("argument 'self' is int"));
  EXPECT_THAT(error_of_node("softmax.int", {{"self", kX}, {"dim", integer(2)}}), HasSubstr("axis 2 of a tensor of rank 2"));
  EXPECT_THAT(error_of_node("permute.default", {{"self", kX}, {"dims", ints("0, 0")}}), HasSubstr("y"));
  EXPECT_THAT(error_of_node("view.default", {{"self", kX}, {"size", ints("-1, -1")}}), HasSubstr("y"));
  EXPECT_THAT(error_of_node("split.Tensor", {{"self", kX}, {"split_size", integer(0)}}), HasSubstr("parts of 0"));
  EXPECT_THAT(error_of_node("cat.default", {{"tensors", R"({"as_tensors": []})"}}), HasSubstr("joins nothing"));
  EXPECT_THAT(error_of_node("gelu.default", {{"self", kX}, {"approximate", R"({"as_string": "wild"})"}}), HasSubstr("'wild'"));
  EXPECT_THAT(error_of_node("dropout.default", {{"input", kX}, {"train", R"({"as_bool": true})"}}), HasSubstr("training mode"));
  const std::string pool = node("y", "max_pool1d.default", {{"self", kX}, {"kernel_size", ints("0")}});
  EXPECT_THAT(error_of(read(TestProgram{{pool}})), HasSubstr("kernel or stride below 1"));
  const std::string twice = R"({"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": )" + kX +
                            R"(}, {"name": "self", "arg": )" + kX + R"(}], "outputs": [)" + tensor("y") + "]}";
  EXPECT_THAT(error_of(read(TestProgram{{twice}})), HasSubstr("'self' twice"));
}

TEST(TorchProgram, M10_DeclaredTypesThatAreNotSo) {
  const std::string declared = R"(, "y": )" + meta(sizes({2, 4}));
  EXPECT_THAT(error_of(read(TestProgram{.nodes = {kAdd}, .declared = declared})),
              HasSubstr("gives f32[2,3], but the program declares f32[2,4]"));
  const std::string narrow = meta(sizes({2, 4}));
  EXPECT_THAT(error_of(read(TestProgram{.nodes = {kAdd}, .x = narrow})), HasSubstr("y"));
}

/// There are no quantised types here: whatever their scales are, the nodes and types are refused by name.
TEST(TorchProgram, M11_QuantisedTypesAndOperators) {
  const std::string aten = node("y", "quantize_per_tensor.default",
                                {{"input", kX}, {"scale", R"({"as_float": 0.0})"}, {"zero_point", integer(999)}, {"dtype", integer(13)}});
  EXPECT_THAT(error_of(read(TestProgram{{aten}})), HasSubstr("'y' (torch.ops.aten.quantize_per_tensor.default)"));
  std::string decomposed = aten;
  decomposed.replace(decomposed.find("ops.aten"), 8, "ops.quantized_decomposed");
  EXPECT_THAT(error_of(read(TestProgram{{decomposed}})), HasSubstr("'y' (torch.ops.quantized_decomposed.quantize_per_tensor.default)"));
  const std::string program = TestProgram{{kAdd}}.json();
  for (const int quantised : {14, 15, 16})
    EXPECT_THAT(error_of(read(files_of(program, weight_row(meta(sizes({2, 3}), quantised, sizes({3, 1})))))),
                HasSubstr(fmt::format("type {}", quantised)));
}

constexpr int kComplex = 10;  // complex64

/// A function of real numbers would take the parts for elements, so that each one of complex numbers has to be listed.
TEST(TorchProgram, ComplexNumbersAreReadByListedOperatorsOnly) {
  const std::string complex = meta(sizes({2, 3}), kComplex);
  const auto says = [&](const std::string& target, const std::vector<std::pair<std::string, std::string>>& arguments) {
    return error_of(read(TestProgram{.nodes = {node("y", target, arguments)}, .x = complex}));
  };
  EXPECT_THAT(says("relu.default", {{"self", kX}}), HasSubstr("'y' (torch.ops.aten.relu.default of complex numbers)"));
  EXPECT_THAT(says("add.Tensor", {{"self", tensor("w")}, {"other", kX}}), Not(HasSubstr("of complex numbers")));
  EXPECT_THAT(says("cat.default", {{"tensors", R"({"as_tensors": [{"name": "w"}, {"name": "x"}]})"}}),
              HasSubstr("Concat(y/Expand, y/Gather, axis=0)"));
  EXPECT_THAT(says("pow.Tensor_Tensor", {{"self", kX}, {"exponent", kX}}), HasSubstr("'y'"));
  EXPECT_THAT(says("permute.default", {{"self", kX}, {"dims", ints("0, 2")}}), HasSubstr("axis 2 of a tensor of rank 2"));
  EXPECT_THAT(says("select.int", {{"self", kX}, {"dim", integer(-1)}, {"index", integer(3)}}), HasSubstr("y"));
  EXPECT_THAT(says("mul.Tensor", {{"self", kX}, {"other", R"({"as_complex": {"real": "one", "imag": 2}})"}}), HasSubstr("is no number"));
  EXPECT_THAT(says("_fft_c2c.default", {{"self", kX}, {"dim", ints("2")}, {"normalization", integer(0)}}), HasSubstr("axis 2"));
  EXPECT_THAT(says("_fft_c2c.default", {{"self", kX}, {"dim", ints("1")}, {"normalization", integer(3)}}), HasSubstr("normalization is 3"));
  EXPECT_THAT(says("stft.default", {{"self", kX}, {"n_fft", integer(0)}}), HasSubstr("frames of 0"));
}

TEST(TorchProgram, WeightsMayBeComplexAndTransposed) {
  const TestProgram program{{node("y", "view_as_real.default", {{"self", tensor("w")}})}};
  const std::string row = meta(sizes({2, 3}), kComplex, sizes({1, 2}));
  std::string json = program.json();
  const std::string real = meta(sizes({2, 3}));
  json.replace(json.rfind(real), real.size(), row);
  EXPECT_THAT(error_of(read(files_of(json, weight_row(row), 44))), HasSubstr("needs 12 elements"));
  std::vector<ZipFile> files = files_of(json, weight_row(row), 48);
  const float values[] = {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5};
  files[3].content.assign(reinterpret_cast<const char*>(values), sizeof values);
  const auto graph = read(files);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(print(*graph), HasSubstr("[2,3,2]"));
  for (size_t id = 0; id < graph->value_capacity(); ++id)
    if (const auto constant = graph->value(static_cast<graph::ValueId>(id)).constant) {
      EXPECT_THAT(constant->span<float>(), ::testing::ElementsAre(0, 0.5, 2, 2.5, 4, 4.5, 1, 1.5, 3, 3.5, 5, 5.5));
    }
}

TEST(TorchProgram, M12_TensorsTooLargeToMake) {
  EXPECT_THAT(error_of_node("full.default", {{"size", ints("1099511627776, 1099511627776")}, {"fill_value", integer(1)}}), HasSubstr("y"));
  EXPECT_THAT(error_of_node("repeat.default", {{"self", kX}, {"repeats", ints("1099511627776, 1099511627776")}}), HasSubstr("y"));
  EXPECT_THAT(error_of_node("eye.default", {{"n", integer(1 << 30)}}), HasSubstr("a matrix of"));
  EXPECT_THAT(error_of_node("unfold.default", {{"self", kX}, {"dimension", integer(0)}, {"size", integer(1)}, {"step", integer(0)}}),
              HasSubstr("windows"));
}

/// A write into a slice is a write into the tensor, and another view of that tensor sees it.
TEST(TorchProgram, WritesIntoViews) {
  const std::string copy = node("c", "clone.default", {{"self", kX}});
  const std::string left =
      node("l", "slice.Tensor", {{"self", tensor("c")}, {"dim", integer(1)}, {"start", integer(0)}, {"end", integer(1)}});
  const std::string other = node("o", "select.int", {{"self", tensor("c")}, {"dim", integer(0)}, {"index", integer(1)}});
  const std::string zero = node("z", "mul_.Scalar", {{"self", tensor("l")}, {"other", integer(0)}});
  const std::string use = node("y", "relu.default", {{"self", tensor("o")}});
  const auto graph = read(TestProgram{{copy, left, other, zero, use}});
  ASSERT_TRUE(graph) << graph.error().message;
  const std::string text = print(*graph);
  EXPECT_THAT(text, HasSubstr("Concat("));
  const size_t joined = text.find("Concat("), read = text.rfind("Gather(");
  EXPECT_LT(joined, read) << text;
}

TEST(TorchProgram, WritesIntoWhatMayBeAView) {
  const std::string copy = node("c", "contiguous.default", {{"self", kX}});
  const std::string zero = node("z", "mul_.Scalar", {{"self", tensor("c")}, {"other", integer(0)}});
  EXPECT_THAT(error_of(read(TestProgram{{copy, zero, kAdd}})), HasSubstr("run_decompositions"));
}

TEST(TorchProgram, InPlaceResultsReplaceTheirOperand) {
  const std::string sum = node("s", "add.Tensor", {{"self", kX}, {"other", tensor("w")}});
  const std::string relu = node("r", "relu_.default", {{"self", tensor("s")}});
  const auto graph = read(TestProgram{{sum, relu, node("y", "neg.default", {{"self", tensor("s")}})}});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(print(*graph), HasSubstr("y = Neg(r)"));
}

TEST(TorchProgram, SizesOfOneSymbolAreEqual) {
  const std::string open =
      R"json({"as_expr": {"expr_str": "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))"}})json";
  TestProgram program{{node("y", "relu.default", {{"self", kX}})}};
  program.x = meta(open + ", " + sizes({3}), 7, sizes({3, 1}));
  const auto graph = read(program);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(print(*graph), HasSubstr("x: f32[2*s0 + 1,3]"));
}

}  // namespace
}  // namespace serin::formats::torch_test
