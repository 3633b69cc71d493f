// old_opsets.cc: reads attributes that changed with opset 7, and the earlier rules of broadcasting.
//
// Until then an operand was stretched only where `broadcast` said so, and `axis` said where its shape begins within the other's; without it the
// shapes end together, which is the NumPy rule. consumed_inputs, of opset 1, was advice to reuse memory.

#include "runtime/formats/onnx/old_opsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace serin::formats::onnx {
namespace {

using graph::Op;
using AttributeType = AttributeProto::Type;

/// By number, as TensorProto.DataType has them: Cast named its type by these until opset 6.
constexpr std::array<std::string_view, 17> kTypeNames = {"UNDEFINED", "FLOAT",  "UINT8",     "INT8",       "UINT16",  "INT16",
                                                         "INT32",     "INT64",  "STRING",    "BOOL",       "FLOAT16", "DOUBLE",
                                                         "UINT32",    "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"};

AttributeProto integer_attribute(std::string_view name, int64_t value) {
  AttributeProto attribute;
  attribute.name = name;
  attribute.type = AttributeType::kInt;
  attribute.i = value;
  return attribute;
}

void modernise(const NodeProto& proto, AttributeProto& attribute) {
  const std::string_view op = proto.op_type;
  if (op == "Pad" && attribute.name == "paddings") attribute.name = "pads";
  if (op == "Cast" && attribute.name == "to" && attribute.type == AttributeType::kString) {
    const auto named = std::ranges::find(kTypeNames, attribute.s);
    if (named != kTypeNames.end()) attribute = integer_attribute("to", named - kTypeNames.begin());
  }
}

bool says_nothing(const NodeProto& proto, std::string_view attribute) {
  const bool recurrent = proto.op_type == "RNN" || proto.op_type == "GRU" || proto.op_type == "LSTM";
  const bool always_stretched = proto.op_type == "Gemm" && attribute == "broadcast";
  return attribute == "consumed_inputs" || always_stretched || (recurrent && attribute == "output_sequence");
}

/// Operators of two operands that were given `broadcast` and `axis`.
constexpr std::array<std::string_view, 11> kStretched = {"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"};

/// Operand `b` shaped so that the NumPy rule aligns its first axis with axis `axis` of operand `a`: with ones behind it.
graph::ValueId aligned_at(NodeImport& node, graph::ValueId a, graph::ValueId b, int64_t axis) {
  graph::Graph& graph = node.graph();
  const auto& a_dims = graph.value(a).type.shape;
  const auto& b_dims = graph.value(b).type.shape;
  if (a_dims && b_dims) {
    const auto a_rank = static_cast<int64_t>(a_dims->size()), b_rank = static_cast<int64_t>(b_dims->size());
    const int64_t ones = a_rank - (axis < 0 ? axis + a_rank : axis) - b_rank;
    if (ones <= 0) return b;
    std::vector<int64_t> axes(static_cast<size_t>(ones));
    std::iota(axes.begin(), axes.end(), b_rank);
    return node.step(Op::kUnsqueeze, "aligned", {b}, {{"axes", axes}});
  }
  // Ranks that are not declared are known to shape inference, which computes this: a reshape to the shape and [rank a - axis - rank b] ones.
  const auto list = [&](const char* name, int64_t value) { return graph.add_constant(name, graph::make_constant(std::span(&value, 1))); };
  const graph::ValueId b_shape = node.step(Op::kShape, "shape", {b});
  const graph::ValueId b_rank = node.step(Op::kShape, "rank", {b_shape});
  graph::ValueId behind = list("behind", -axis);
  if (axis >= 0) {
    const graph::ValueId a_rank = node.step(Op::kShape, "a_rank", {node.step(Op::kShape, "a_shape", {a})});
    behind = node.step(Op::kSub, "behind", {a_rank, list("axis", axis)});
  }
  const graph::ValueId count = node.step(Op::kSub, "count", {behind, b_rank});
  const graph::ValueId ones = node.step(Op::kConstantOfShape, "ones", {count}, {{"value", graph::make_scalar(DType::kInt64, 1)}});
  const graph::ValueId shape = node.step(Op::kConcat, "aligned_shape", {b_shape, ones}, {{"axis", int64_t{0}}});
  return node.step(Op::kReshape, "aligned", {b, shape}, {{"allowzero", int64_t{1}}});
}

void align_second(NodeImport& node) {
  const bool stretched = node.flag("broadcast", false);
  const bool has_axis = node.has("axis");
  const int64_t axis = node.integer("axis", 0);
  constexpr auto kMaxRank = static_cast<int64_t>(Shape::kMaxRank);
  if (axis < -kMaxRank || axis >= kMaxRank) return node.corrupt(fmt::format("axis is {}", axis));
  if (stretched && has_axis) node.set_input(1, aligned_at(node, node.input(0), node.input(1), axis));
}

/// Tile once took a number of tiles and an axis, where it takes the repeats of all axes now.
void list_repeats(NodeImport& node) {
  if (node.input(2) == graph::kNone) return;
  const auto number = [&](size_t i) -> std::optional<int64_t> {
    const auto list = node.constant(i) ? graph::integers_of(*node.constant(i)) : std::nullopt;
    const auto real = node.constant(i) ? graph::number_of(*node.constant(i)) : std::nullopt;  // the first models have them as floats
    if (list && list->size() == 1) return list->front();
    const double value = real.value_or(1e6);
    return std::abs(value) < 1e6 ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
  };
  const auto tiles = number(1), axis = number(2);
  const auto rank = node.rank(0);
  if (!tiles || !axis || !rank) return node.unsupported("tiles and axis are computed, or the rank of the tiled tensor is not declared");
  if (*axis < 0 || *axis >= static_cast<int64_t>(*rank)) return node.corrupt("axis is out of range");
  std::vector<int64_t> repeats(*rank, 1);
  repeats[static_cast<size_t>(*axis)] = *tiles;
  node.set_input(1, node.graph().add_constant("repeats", graph::make_constant(repeats)));
  node.set_input(2, graph::kNone);
}

}  // namespace

NodeProto modern_attributes(const NodeProto& proto) {
  NodeProto modern = proto;
  std::erase_if(modern.attributes, [&](const AttributeProto& attribute) { return says_nothing(proto, attribute.name); });
  for (AttributeProto& attribute : modern.attributes) modernise(proto, attribute);
  const bool has_axis = std::ranges::find(modern.attributes, "axis", &AttributeProto::name) != modern.attributes.end();
  if (proto.op_type == "Concat" && !has_axis) modern.attributes.push_back(integer_attribute("axis", 1));
  return modern;
}

void modernise_operands(NodeImport& node) {
  const std::string_view op = node.proto().op_type;
  const bool two = node.input(0) != graph::kNone && node.input(1) != graph::kNone;  // their number is checked behind this
  if (two && std::ranges::find(kStretched, op) != kStretched.end()) align_second(node);
  if (two && op == "PRelu" && node.rank(1).value_or(1) == 1) node.set_input(1, aligned_at(node, node.input(0), node.input(1), 1));
  if (op == "Reshape" && node.input(1) == graph::kNone)
    if (const auto shape = node.integers("shape")) node.set_input(1, node.graph().add_constant("shape", graph::make_constant(*shape)));
  if (op == "Tile") list_repeats(node);
  if (op == "BatchNormalization" && !node.flag("is_test", false)) node.unsupported("is_test is off; export the model for inference");
}

}  // namespace serin::formats::onnx
