// Opsets 1 to 6: broadcasting by axis, attributes that became operands, names and types that changed. And sparse tensors, old and new.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/formats/onnx/encode.h"

namespace serin::formats {
namespace {

using ::testing::HasSubstr;

/// The graph of one node over x: f32[n,4,5], as text, without its first and last line.
std::string lowered(int64_t opset, const Encoder& one_node, const std::vector<Encoder>& constants = {}) {
  const auto graph = read(model(opset, {{one_node}, constants, {value("x", {"n", "4", "5"})}, {value("y", {})}}));
  if (!graph) return graph.error().message;
  const std::string text = print(*graph);
  const size_t first = text.find('\n') + 1;
  return text.substr(first, text.find("return") - first);
}

TEST(OldOpsets, BroadcastingFromAnAxisOn) {
  const std::vector<Encoder> at_1 = {attribute("broadcast", int64_t{1}), attribute("axis", int64_t{1})};
  EXPECT_EQ(lowered(6, node("Add", "y", {"x", "b"}, {"y"}, at_1), {f32("b", {4})}),
            "y/aligned = Unsqueeze(b[4], axes=[1])\ny = Add(x, y/aligned)\n");
  const std::vector<Encoder> at_minus_2 = {attribute("broadcast", int64_t{1}), attribute("axis", int64_t{-2})};
  EXPECT_THAT(lowered(6, node("Pow", "y", {"x", "b"}, {"y"}, at_minus_2), {f32("b", {4})}), HasSubstr("Unsqueeze(b[4], axes=[1])"));
  EXPECT_EQ(lowered(6, node("Mul", "y", {"x", "b"}, {"y"}, {attribute("broadcast", int64_t{1})}), {f32("b", {5})}), "y = Mul(x, b[5])\n");
}

TEST(OldOpsets, BroadcastingWhereRanksAreNotDeclared) {
  const std::vector<Encoder> at_1 = {attribute("broadcast", int64_t{1}), attribute("axis", int64_t{1})};
  const auto graph = read(model(6, {{node("Relu", "r", {"x"}, {"t"}), node("Add", "a", {"t", "b"}, {"y"}, at_1)},
                                    {f32("b", {4})},
                                    {value("x", {"n", "4", "5"})},
                                    {value("y", {})}}));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(print(graph->value(graph->outputs()[0]).type), "f32[n,4,5]");
}

TEST(OldOpsets, M9AnAxisThatIsNone) {
  const std::vector<Encoder> far = {attribute("broadcast", int64_t{1}), attribute("axis", INT64_MIN)};
  EXPECT_THAT(lowered(6, node("Add", "y", {"x", "b"}, {"y"}, far), {f32("b", {4})}), HasSubstr("axis is -9223372036854775808"));
}

TEST(OldOpsets, SlopesOfPReluAreThoseOfTheChannels) {
  EXPECT_THAT(lowered(6, node("PRelu", "y", {"x", "s"}, {"y"}), {f32("s", {4})}), HasSubstr("Unsqueeze(s[4], axes=[1])"));
  EXPECT_THAT(lowered(7, node("PRelu", "y", {"x", "s"}, {"y"}), {f32("s", {5})}), HasSubstr("PRelu(x, s[5])"));
}

TEST(OldOpsets, AttributesThatBecameOperands) {
  EXPECT_THAT(lowered(4, node("Reshape", "y", {"x"}, {"y"}, {attribute("shape", std::vector<int64_t>{-1, 20})})),
              HasSubstr("Reshape(x, shape:i64[2]{-1,20})"));
  EXPECT_THAT(lowered(5, node("Tile", "y", {"x", "n", "a"}, {"y"}), {f32("n", {1}, {3}), f32("a", {1}, {2})}),
              HasSubstr("Tile(x, repeats:i64[3]{1,1,3})"));
}

TEST(OldOpsets, NamesTypesAndDefaultsThatChanged) {
  EXPECT_THAT(lowered(1, node("Pad", "y", {"x"}, {"y"}, {attribute("paddings", std::vector<int64_t>{0, 0, 1, 0, 0, 1})})),
              HasSubstr("pads=[0,0,1,0,0,1]"));
  EXPECT_EQ(lowered(5, node("Cast", "y", {"x"}, {"y"}, {attribute("to", "DOUBLE")})), "y = Cast(x, to=f64)\n");
  EXPECT_EQ(lowered(3, node("Concat", "y", {"x", "x"}, {"y"})), "y = Concat(x, x, axis=1)\n");
  EXPECT_EQ(lowered(1, node("Relu", "y", {"x"}, {"y"}, {attribute("consumed_inputs", std::vector<int64_t>{0})})), "y = Relu(x)\n");
  EXPECT_THAT(lowered(7, node("Relu", "y", {"x"}, {"y"}, {attribute("consumed_inputs", std::vector<int64_t>{0})})),
              HasSubstr("'consumed_inputs'"));
}

TEST(OldOpsets, ModelsThatSayNoOpsetBeforeIrVersion3) {
  const Encoder parts = graph({{node("Relu", "y", {"x"}, {"y"})}, {}, {value("x", {"n"})}, {value("y", {})}});
  EXPECT_TRUE(read(Encoder().number(1, 2).message(7, parts)));
  EXPECT_THAT(error_of(read(Encoder().number(1, 3).message(7, parts))), HasSubstr("does not say which opset it uses"));
}

// ---- sparse tensors ----

Encoder sparse(const std::vector<float>& values, const Encoder& indices, const std::vector<int64_t>& dims) {
  Encoder out;
  out.message(1, f32("w", {static_cast<int64_t>(values.size())}, values)).message(2, indices);
  for (const int64_t dim : dims) out.number(3, dim);
  return out;
}

Result<graph::Graph> with_sparse(const Encoder& tensor) {
  Encoder parts = graph({{node("Identity", "i", {"x"}, {"y"})}, {}, {value("x", {"n"})}, {value("w", {}), value("y", {})}});
  return read(model(13, parts.message(15, tensor)));
}

std::vector<float> unfolded(const Encoder& tensor) {
  const auto graph = with_sparse(tensor);
  if (!graph) return {};
  const auto span = graph->constant(graph->outputs()[0])->span<float>();
  return {span.begin(), span.end()};
}

TEST(SparseTensors, AreUnfolded) {
  EXPECT_EQ(unfolded(sparse({1, 2}, i64("i", {1, 5}), {2, 3})), (std::vector<float>{0, 1, 0, 0, 0, 2}));
  EXPECT_EQ(unfolded(sparse({1, 2}, tensor("i", 7, {2, 2}, raw_bytes<int64_t>({0, 1, 1, 2})), {2, 3})),
            (std::vector<float>{0, 1, 0, 0, 0, 2}));
  EXPECT_EQ(unfolded(sparse({}, i64("i", {}), {2})), (std::vector<float>{0, 0}));
}

TEST(SparseTensors, InConstants) {
  const Encoder constant =
      node("Constant", "c", {}, {"y"}, {Encoder().bytes(1, "sparse_value").number(20, 11).message(22, sparse({3}, i64("i", {1}), {2}))});
  const auto graph = read(model(13, {{constant}, {}, {}, {value("y", {})}}));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->constant(graph->outputs()[0])->span<float>()[1], 3.F);
}

TEST(SparseTensors, M7BrokenOnes) {
  EXPECT_THAT(error_of(with_sparse(sparse({1, 2}, i64("i", {5, 1}), {2, 3}))), HasSubstr("index 1 is not behind the one before it"));
  EXPECT_THAT(error_of(with_sparse(sparse({1, 2}, i64("i", {1, 6}), {2, 3}))), HasSubstr("index 1 is out of range"));
  EXPECT_THAT(error_of(with_sparse(sparse({1, 2}, i64("i", {-1, 5}), {2, 3}))), HasSubstr("index 0 is out of range"));
  EXPECT_THAT(error_of(with_sparse(sparse({1, 2}, i64("i", {1}), {2, 3}))), HasSubstr("has indices i64[1] for 2 values"));
  EXPECT_THAT(error_of(with_sparse(sparse({1}, i64("i", {1}), {-2, 3}))), HasSubstr("negative dimension"));
}

TEST(SparseTensors, M12AFewBytesThatClaimTerabytes) {
  EXPECT_THAT(error_of(with_sparse(sparse({1}, i64("i", {1}), {int64_t{1} << 40}))), HasSubstr("would unfold to 1099511627776 elements"));
}

}  // namespace
}  // namespace serin::formats
