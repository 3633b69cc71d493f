// Images: channels come first inside, and no Transpose is left between layers.

#include "runtime/formats/tensorflow/scope.h"

#include <gmock/gmock.h>

#include "runtime/formats/tensorflow/operators.h"
#include "tests/runtime/formats/tensorflow/saved_model.h"

namespace serin::formats::tf {
namespace {

using namespace test;

size_t count(const graph::Graph& graph, graph::Op op) { return graph.nodes(op).size(); }

Model image_model(const std::vector<Node>& nodes, const std::string& output) {
  Model model = model_of(nodes, output);
  model.inputs[0].shape = {-1, 8, 8, 3};
  return model;
}

Node filter(const std::string& name, const Shape& shape) {
  size_t elements = 1;
  for (const int64_t size : shape) elements *= static_cast<size_t>(size);
  std::vector<float> values(elements);
  for (size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i);
  return floats(name, shape, values);
}

std::map<std::string, std::string> window(std::string_view padding, int64_t stride = 1) {
  return {{"padding", attr_text(padding)}, {"strides", attr_ints({1, stride, stride, 1})}};
}

TEST(ImageLayout, ChainsOfConvolutionsHaveOneTransposeAtEitherEnd) {
  const auto graph = read(image_model({filter("w", {3, 3, 3, 4}),
                                       filter("v", {3, 3, 4, 1}),
                                       filter("b", {4}),
                                       {"c", "Conv2D", {"x", "w"}, window("SAME")},
                                       {"d", "BiasAdd", {"c", "b"}, {}},
                                       {"e", "Relu", {"d"}, {}},
                                       {"f", "DepthwiseConv2dNative", {"e", "v"}, window("SAME", 2)},
                                       {"g", "AddV2", {"f", "f"}, {}},
                                       {"h", "Mul", {"g", "b"}, {}}},
                                      "h"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(count(*graph, graph::Op::kTranspose), 2U) << graph::print(*graph);
  EXPECT_EQ(graph->node(graph->nodes(graph::Op::kConv).back()).integers("pads"), (std::vector<int64_t>{0, 0, 1, 1}));
}

TEST(ImageLayout, KernelsAreTransposedOnce) {
  const auto graph = read(image_model({filter("w", {1, 2, 3, 2}), {"c", "Conv2D", {"x", "w"}, window("VALID")}}, "c"));
  ASSERT_TRUE(graph) << graph.error().message;
  const graph::ConstantPtr weight = graph->constant(graph->input(graph->nodes(graph::Op::kConv)[0], 1));
  ASSERT_TRUE(weight);
  EXPECT_EQ(weight->shape, (serin::Shape{2, 3, 1, 2}));  // of [h, w, in, out]: element (h, w, i, o) is w * 6 + i * 2 + o
  const auto values = weight->span<float>();
  EXPECT_THAT(std::vector<float>(values.begin(), values.end()), testing::ElementsAre(0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11));
}

TEST(ImageLayout, PaddingBelongsToTheConvolution) {
  const auto graph = read(image_model({filter("w", {3, 3, 3, 4}),
                                       constant("pads", 3, tensor_proto<int32_t>(3, {4, 2}, {0, 0, 1, 1, 2, 2, 0, 0})),
                                       {"p", "Pad", {"x", "pads"}, {}},
                                       {"c", "Conv2D", {"p", "w"}, window("VALID", 2)}},
                                      "c"));
  ASSERT_TRUE(graph) << graph.error().message;
  const graph::NodeId conv = graph->nodes(graph::Op::kConv)[0];
  EXPECT_EQ(graph->node(conv).integers("pads"), (std::vector<int64_t>{1, 2, 1, 2}));
  EXPECT_FALSE(graph->is(graph->producer(graph->input(conv, 0)), graph::Op::kPad));
}

TEST(ImageLayout, ScaleAndShiftAreANormalisation) {
  const auto graph = read(image_model({filter("w", {1, 1, 3, 4}),
                                       filter("s", {4}),
                                       filter("t", {1, 1, 1, 4}),
                                       {"c", "Conv2D", {"x", "w"}, window("SAME")},
                                       {"m", "Mul", {"c", "s"}, {}},
                                       {"a", "AddV2", {"m", "t"}, {}}},
                                      "a"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(count(*graph, graph::Op::kBatchNormalization), 1U) << graph::print(*graph);
}

TEST(ImageLayout, AMeanOverThePixelsIsAPool) {
  const auto graph = read(image_model(
      {filter("w", {1, 1, 3, 4}), integers("axes", {1, 2}), {"c", "Conv2D", {"x", "w"}, window("SAME")}, {"m", "Mean", {"c", "axes"}, {}}},
      "m"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(count(*graph, graph::Op::kGlobalAveragePool), 1U);
  EXPECT_EQ(count(*graph, graph::Op::kTranspose), 1U) << graph::print(*graph);
}

TEST(ImageLayout, ATransposeOfTheFileUndoesOurs) {
  const auto graph = read(image_model({filter("w", {1, 1, 3, 4}),
                                       integers("order", {0, 3, 1, 2}),
                                       {"c", "Conv2D", {"x", "w"}, window("SAME")},
                                       {"t", "Transpose", {"c", "order"}, {}},
                                       {"y", "Relu", {"t"}, {}}},
                                      "y"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(count(*graph, graph::Op::kTranspose), 1U) << graph::print(*graph);
}

}  // namespace
}  // namespace serin::formats::tf
