// Functions, slices, products, loops: which graph comes of them.

#include <gmock/gmock.h>

#include "runtime/formats/tensorflow/einsum.h"
#include "runtime/formats/tensorflow/elementwise.h"
#include "runtime/formats/tensorflow/loop.h"
#include "runtime/formats/tensorflow/node_import.h"
#include "runtime/formats/tensorflow/slice.h"
#include "tests/runtime/formats/tensorflow/saved_model.h"

namespace serin::formats::tf {
namespace {

using namespace test;
using ::testing::HasSubstr;

std::string text_of(const Model& model) { return error_of(model); }

TEST(SavedModelGraph, FunctionsAreWrittenOut) {
  Model model = model_of({{"y", "StatefulPartitionedCall", {"x"}, {{"f", attr_function("outer")}}}});
  model.functions = {{"outer", {"p"}, {{"n", "PartitionedCall", {"p"}, {{"f", attr_function("inner")}}}}, {{"r", "n:output:1"}}},
                     {"inner",
                      {"q"},
                      {{"a", "Relu", {"q"}, {}}, {"b", "Neg", {"a:activations:0"}, {}}},
                      {{"first", "a:activations:0"}, {"second", "b:y:0"}}}};
  EXPECT_THAT(text_of(model), HasSubstr("a = Relu(x)\nb = Neg(a)\nreturn b as y"));
}

TEST(SavedModelGraph, SlicesWithMasks) {
  const auto slice = [](const std::vector<int32_t>& begin, const std::vector<int32_t>& end, std::map<std::string, std::string> masks) {
    return text_of(model_of({integers("b", begin),
                             integers("e", end),
                             integers("s", std::vector<int32_t>(begin.size(), 1)),
                             {"y", "StridedSlice", {"x", "b", "e", "s"}, std::move(masks)}}));
  };
  EXPECT_THAT(slice({0, 1}, {0, 3}, {{"begin_mask", attr_int(1)}, {"end_mask", attr_int(1)}}),
              HasSubstr("Slice(x, axes=[1], ends=[3], starts=[1]"));
  EXPECT_THAT(slice({0, 2}, {0, 3}, {{"begin_mask", attr_int(1)}, {"end_mask", attr_int(1)}, {"shrink_axis_mask", attr_int(2)}}),
              HasSubstr("Gather(x"));
  EXPECT_THAT(slice({0, 1}, {0, 3}, {{"ellipsis_mask", attr_int(1)}}), HasSubstr("Slice(x, axes=[1], ends=[3], starts=[1]"));
  EXPECT_THAT(slice({0, 0}, {0, 0}, {{"ellipsis_mask", attr_int(1)}, {"new_axis_mask", attr_int(2)}}), HasSubstr("Unsqueeze(x, axes=[2])"));
  EXPECT_THAT(slice({0, 0, 0}, {1, 1, 1}, {}), HasSubstr("3 indices of a tensor of rank 2"));
  EXPECT_THAT(slice({0, 0}, {1, 1}, {{"ellipsis_mask", attr_int(3)}}), HasSubstr("indices"));
}

TEST(SavedModelGraph, SumsOfProductsAreProducts) {
  const auto einsum = [](const std::string& equation, const Shape& shape) {
    size_t elements = 1;
    for (const int64_t size : shape) elements *= static_cast<size_t>(size);
    return text_of(
        model_of({floats("w", shape, std::vector<float>(elements, 1)), {"y", "Einsum", {"x", "w"}, {{"equation", attr_text(equation)}}}}));
  };
  EXPECT_THAT(einsum("ab,bc->ac", {4, 5}), HasSubstr("y = MatMul(x, w[4,5])"));
  EXPECT_THAT(einsum("ab,bcd->acd", {4, 2, 3}), HasSubstr("MatMul(x, w_2[4,6])"));
  EXPECT_THAT(einsum("ab,b->a", {4}), HasSubstr("Einsum(x")) << "no matrix";
  EXPECT_THAT(einsum("aab,bc->ac", {4, 5}), HasSubstr("node 'y'"));
}

/// The sum of the rows 0 .. 2 of a matrix, by a loop.
TEST(SavedModelGraph, CountersAreTheIterationOfALoop) {
  Model model = model_of({constant("zero", 3, tensor_proto<int32_t>(3, {}, {0})),
                          floats("start", {4}, {0, 0, 0, 0}),
                          {"loop", "While", {"zero", "start", "x"}, {{"body", attr_function("body")}, {"cond", attr_function("cond")}}},
                          {"y", "Relu", {"loop:1"}, {}}});
  model.functions = {{"cond",
                      {"i", "s", "x"},
                      {constant("three", 3, tensor_proto<int32_t>(3, {}, {3})), {"l", "Less", {"i", "three:output:0"}, {}}},
                      {{"r", "l:z:0"}}},
                     {"body",
                      {"i", "s", "x"},
                      {constant("one", 3, tensor_proto<int32_t>(3, {}, {1})),
                       constant("axis", 3, tensor_proto<int32_t>(3, {}, {0})),
                       {"n", "AddV2", {"i", "one:output:0"}, {}},
                       {"g", "GatherV2", {"x", "i", "axis:output:0"}, {}},
                       {"t", "AddV2", {"s", "g:output:0"}, {}}},
                      {{"a", "n:z:0"}, {"b", "t:z:0"}, {"c", "x"}}}};
  const std::string text = text_of(model);
  EXPECT_THAT(text, HasSubstr("Loop("));
  EXPECT_THAT(text, HasSubstr("carried=1"));
  const auto graph = read(model);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph::print(graph->value(graph->outputs()[0]).type), "f32[4]") << "each iteration keeps the shape of the sum";
}

TEST(SavedModelGraph, SizesThatMeetHaveOneName) {
  Model model = model_of({{"y", "AddV2", {"x", "z"}, {}}, placeholder("z")});
  model.inputs = {{"x", "x:0", 1, {-1, -1}}, {"z", "z:0", 1, {-1, -1}}};
  EXPECT_THAT(text_of(model), HasSubstr("x: f32[batch,x_d1]\nz: f32[batch,x_d1]\n"));
  model.nodes[1] = {"y", "MatMul", {"x", "z"}, {}};
  EXPECT_THAT(text_of(model), HasSubstr("z_d1")) << "the axes of a product are others";
}

}  // namespace
}  // namespace serin::formats::tf
