// Models whose flaw shows only once shapes, sizes or values are known (M9 to M12 of tests/README.md): each is refused with what is wrong,
// at load where that can be known, else by the run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/engine/engine.h"
#include "tests/runtime/formats/onnx/encode.h"

namespace serin::engine {
namespace {

using formats::attribute;
using formats::Encoder;
using formats::f32;
using formats::graph_attribute;
using formats::i64;
using formats::model;
using formats::node;
using formats::tensor;
using formats::value;
using ::testing::HasSubstr;

constexpr size_t kArena = size_t{1} << 28;

/// What loading and then running on zeros answers; "" where it runs.
std::string answer(const Encoder& file, const std::vector<Value>& inputs = {}, size_t max_arena_bytes = kArena) {
  static const auto backend = kernels::make_cpu_backend({.onednn_path = "none", .reference_only = true});
  auto graph = formats::read(file);
  if (!graph) return graph.error().message;
  LoadOptions options;
  options.max_arena_bytes = max_arena_bytes;
  const auto loaded = Model::from_graph(std::move(*graph), *backend, std::move(options));
  if (!loaded) return loaded.error().message;
  const auto results = (*loaded)->run(inputs);
  return results ? "" : results.error().message;
}

/// One node "the_node" over x: f32[2,4] and constants.
std::string answer_of(int64_t opset, std::string_view op, const std::vector<std::string>& inputs, const std::vector<Encoder>& constants,
                      const std::vector<Encoder>& attributes = {}, const std::vector<std::string>& outputs = {"y"}) {
  const std::vector<float> zeros(8);
  const auto x = Value::of(graph::make_constant(DType::kFloat32, Shape{2, 4}, zeros.data()));
  return answer(
      model(opset, {{node(op, "the_node", inputs, outputs, attributes)}, constants, {value("x", {"2", "4"})}, {value(outputs[0], {})}}),
      {x});
}

Encoder i64_scalar(std::string_view name, int64_t number) { return tensor(name, 7, {}, formats::raw_bytes<int64_t>({number})); }
Encoder f32_scalar(std::string_view name, float number) { return f32(name, {}, {number}); }
Encoder i8(std::string_view name, const std::vector<int64_t>& dims, const std::vector<int8_t>& values) {
  return tensor(name, 3, dims, formats::raw_bytes(values));
}

TEST(BadModel, M9TopKOfMoreThanThereAre) {
  EXPECT_THAT(answer_of(11, "TopK", {"x", "k"}, {i64("k", {9})}, {}, {"y", "i"}), HasSubstr("'the_node' (TopK)"));
  EXPECT_THAT(answer_of(11, "TopK", {"x", "k"}, {i64("k", {-1})}, {}, {"y", "i"}), HasSubstr("'the_node' (TopK)"));
}

TEST(BadModel, M9ResizeByScalesThatAreNone) {
  for (const float scale : {0.F, -1.F, std::nanf(""), INFINITY, 1e30F})
    EXPECT_THAT(answer_of(13, "Resize", {"x", "", "s"}, {f32("s", {2}, {1, scale})}), HasSubstr("'the_node' (Resize)")) << scale;
}

TEST(BadModel, M9SplitSizesThatDoNotAddUp) {
  EXPECT_THAT(answer_of(13, "Split", {"x", "s"}, {i64("s", {3, 3})}, {attribute("axis", int64_t{1})}, {"y", "z"}),
              HasSubstr("'the_node' (Split)"));
}

TEST(BadModel, M9IndicesOutOfRange) {
  EXPECT_THAT(answer_of(13, "GatherElements", {"x", "i"}, {tensor("i", 7, {1, 1}, formats::raw_bytes<int64_t>({7}))}),
              HasSubstr("'the_node'"));
  EXPECT_THAT(answer_of(13, "GatherND", {"x", "i"}, {tensor("i", 7, {1, 2}, formats::raw_bytes<int64_t>({0, -5}))}),
              HasSubstr("'the_node'"));
  EXPECT_THAT(answer_of(13, "ScatterND", {"x", "i", "u"}, {tensor("i", 7, {1, 2}, formats::raw_bytes<int64_t>({2, 0})), f32("u", {1})}),
              HasSubstr("'the_node'"));
}

TEST(BadModel, M9ALoopForEver) {
  const Encoder body = formats::graph({{node("Identity", "again", {"go"}, {"go_on"}), node("Relu", "step", {"v"}, {"w"})},
                                       {},
                                       {value("i", {}, 7), value("go", {}, 9), value("v", {"2", "4"})},
                                       {value("go_on", {}, 9), value("w", {"2", "4"}), value("w", {"2", "4"})}});
  // Each iteration leaves 32 bytes of `y`: 2^63 of them end at the limit of memory, not at the end of time.
  const Encoder loop = node("Loop", "the_node", {"n", "", "x"}, {"v_end", "y"}, {graph_attribute("body", body)});
  const std::vector<float> zeros(8);
  const auto x = Value::of(graph::make_constant(DType::kFloat32, Shape{2, 4}, zeros.data()));
  const Encoder file = model(13, {{loop}, {i64_scalar("n", INT64_MAX)}, {value("x", {"2", "4"})}, {value("y", {})}});
  EXPECT_THAT(answer(file, {x}, size_t{1} << 20), HasSubstr("'the_node' (Loop)"));
}

TEST(BadModel, M10ShapesThatContradictEachOther) {
  EXPECT_THAT(answer_of(13, "Add", {"x", "b"}, {f32("b", {3})}), HasSubstr("'the_node' (Add)"));
  EXPECT_THAT(answer_of(13, "MatMul", {"x", "b"}, {f32("b", {5, 2})}), HasSubstr("'the_node' (MatMul)"));
}

TEST(BadModel, M10OneSymbolForTwoSizes) {
  const Encoder file = model(13, {{node("Add", "a", {"p", "q"}, {"y"})}, {}, {value("p", {"n"}), value("q", {"n"})}, {value("y", {})}});
  const std::vector<float> zeros(3);
  const auto of_size = [&](int64_t n) { return Value::of(graph::make_constant(DType::kFloat32, Shape{n}, zeros.data())); };
  EXPECT_EQ(answer(file, {of_size(2), of_size(2)}), "");
  EXPECT_THAT(answer(file, {of_size(2), of_size(3)}), HasSubstr("input 'q'"));
}

TEST(BadModel, M11ScalesAndZeroPointsThatDoNotFit) {
  const std::string channels =
      answer_of(13, "QuantizeLinear", {"x", "s", "z"}, {f32("s", {3}), i8("z", {3}, {0, 0, 0})}, {attribute("axis", int64_t{1})});
  EXPECT_THAT(channels, HasSubstr("'the_node' (QuantizeLinear)"));
  EXPECT_THAT(answer_of(13, "QuantizeLinear", {"x", "s", "z"}, {f32("s", {4}), i8("z", {2}, {0, 0})}, {attribute("axis", int64_t{1})}),
              HasSubstr("'the_node' (QuantizeLinear)"));
  EXPECT_THAT(answer_of(13, "QuantizeLinear", {"x", "s", "z"}, {f32_scalar("s", 1), f32_scalar("z", 0)}),
              HasSubstr("'the_node' (QuantizeLinear)"));
  EXPECT_THAT(answer_of(13, "QuantizeLinear", {"x", "s"}, {f32("s", {4})}, {attribute("axis", int64_t{5})}),
              HasSubstr("'the_node' (QuantizeLinear)"));
  EXPECT_THAT(answer_of(21, "QuantizeLinear", {"x", "s"}, {f32("s", {2, 2})},
                        {attribute("axis", int64_t{1}), attribute("block_size", int64_t{-2})}),
              HasSubstr("'the_node' (QuantizeLinear)"));
}

TEST(BadModel, M11ScalesThatAreNoneAreComputedWith) {
  for (const float scale : {0.F, -1.F, std::nanf(""), INFINITY})
    EXPECT_EQ(answer_of(13, "QuantizeLinear", {"x", "s", "z"}, {f32_scalar("s", scale), i8("z", {}, {0})}), "") << scale;
}

TEST(BadModel, M11BitsThatNobodyHas) {
  const std::vector<Encoder> attributes = {attribute("K", int64_t{4}), attribute("N", int64_t{1}), attribute("bits", int64_t{3}),
                                           attribute("block_size", int64_t{16})};
  Encoder file = model(13, {{node("MatMulNBits", "the_node", {"x", "b", "s"}, {"y"}, attributes).bytes(7, "com.microsoft")},
                            {tensor("b", 2, {1, 1, 8}, std::string(8, '\0')), f32("s", {1})},
                            {value("x", {"2", "4"})},
                            {value("y", {})}});
  EXPECT_THAT(answer(file.message(8, Encoder().bytes(1, "com.microsoft").number(2, 1))), HasSubstr("'the_node'"));
}

// ---- M12: a few bytes that ask for terabytes ----

constexpr int64_t kHuge = int64_t{1} << 40;

TEST(BadModel, M12ConstantOfShape) { EXPECT_THAT(answer_of(13, "ConstantOfShape", {"d"}, {i64("d", {kHuge})}), HasSubstr("'the_node'")); }
TEST(BadModel, M12Expand) { EXPECT_THAT(answer_of(13, "Expand", {"x", "d"}, {i64("d", {kHuge, 2, 4})}), HasSubstr("'the_node'")); }
TEST(BadModel, M12Tile) { EXPECT_THAT(answer_of(13, "Tile", {"x", "r"}, {i64("r", {kHuge, kHuge})}), HasSubstr("'the_node'")); }
TEST(BadModel, M12Pad) { EXPECT_THAT(answer_of(13, "Pad", {"x", "p"}, {i64("p", {0, 0, kHuge, kHuge})}), HasSubstr("'the_node'")); }
TEST(BadModel, M12Range) {
  EXPECT_THAT(answer_of(13, "Range", {"a", "b", "c"}, {i64_scalar("a", 0), i64_scalar("b", kHuge), i64_scalar("c", 1)}),
              HasSubstr("'the_node'"));
  EXPECT_THAT(answer_of(13, "Range", {"a", "b", "c"}, {i64_scalar("a", INT64_MIN), i64_scalar("b", INT64_MAX), i64_scalar("c", 1)}),
              HasSubstr("'the_node'"));
  EXPECT_THAT(answer_of(13, "Range", {"a", "b", "c"}, {f32_scalar("a", 0), f32_scalar("b", 1e38F), f32_scalar("c", 1e-38F)}),
              HasSubstr("'the_node'"));
  EXPECT_THAT(answer_of(13, "Range", {"a", "b", "c"}, {i64_scalar("a", 0), i64_scalar("b", 5), i64_scalar("c", 0)}),
              HasSubstr("'the_node'"));
}
TEST(BadModel, M12OneHot) {
  EXPECT_THAT(answer_of(13, "OneHot", {"i", "n", "v"}, {i64("i", {0, 1}), i64_scalar("n", kHuge), f32("v", {2})}), HasSubstr("'the_node'"));
}
TEST(BadModel, M12Resize) { EXPECT_THAT(answer_of(13, "Resize", {"x", "", "", "d"}, {i64("d", {kHuge, kHuge})}), HasSubstr("'the_node'")); }
TEST(BadModel, M12Windows) { EXPECT_THAT(answer_of(17, "HannWindow", {"n"}, {i64_scalar("n", kHuge)}), HasSubstr("'the_node'")); }
TEST(BadModel, M12EyeLikeOfWhatIsComputed) {
  EXPECT_THAT(answer_of(22, "RandomNormal", {}, {}, {attribute("shape", std::vector<int64_t>{kHuge})}), HasSubstr("'the_node'"));
}

TEST(BadModel, M12ResultsBeyondTheLimitOfMemory) {
  EXPECT_THAT(answer_of(13, "Tile", {"x", "r"}, {i64("r", {1 << 20, 16})}), HasSubstr("the results would take 536870912 bytes"));
}

TEST(BadModel, M12WithinTheLimitsOfAShapeButNotOfTheArena) {
  const std::string message = answer_of(13, "Expand", {"x", "d"}, {i64("d", {1 << 20, 2, 4})}, {}, {"y"});
  EXPECT_EQ(message, "");  // straight into the caller's memory
  const Encoder chain = model(13, {{node("Expand", "wide", {"x", "d"}, {"w"}), node("ReduceSum", "sum", {"w"}, {"y"})},
                                   {i64("d", {1 << 24, 2, 4})},
                                   {value("x", {"2", "4"})},
                                   {value("y", {})}});
  EXPECT_THAT(answer(chain), ::testing::AllOf(HasSubstr("536870912"), HasSubstr("268435456")));
}

}  // namespace
}  // namespace serin::engine
