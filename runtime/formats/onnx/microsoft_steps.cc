// microsoft_steps.cc: small steps that the importers of com.microsoft's operators share.

#include "runtime/formats/onnx/microsoft.h"

#include <fmt/format.h>

namespace serin::formats::onnx {

using graph::Op;
using graph::ValueId;

ValueId integers_step(NodeImport& node, std::string_view name, const Integers& values) {
  return node.step_constant(name, graph::make_constant(values));
}

ValueId index_step(NodeImport& node, std::string_view name, int64_t value) {
  return node.step_constant(name, graph::make_scalar(DType::kInt64, static_cast<double>(value)));
}

ValueId number_like(NodeImport& node, std::string_view name, double value, ValueId like) {
  const graph::Value& model = node.graph().value(like);
  const DType known = model.constant ? model.constant->dtype : model.type.dtype;
  const bool plain = known == DType::kFloat32 || known == DType::kFloat64;
  const ValueId number = node.step_constant(name, graph::make_scalar(plain ? known : DType::kFloat32, value));
  if (plain) return number;
  return node.step(Op::kCastLike, fmt::format("{}_typed", name), {number, like});
}

std::vector<ValueId> split_step(NodeImport& node, std::string_view name, ValueId x, int64_t axis, size_t parts, const Integers& sizes) {
  graph::Graph& graph = node.graph();
  graph::Attributes attributes{{"axis", axis}};
  if (!sizes.empty()) attributes.emplace("split", sizes);
  const graph::NodeId id = graph.add_node(Op::kSplit, fmt::format("{}/{}", node.name(), name), {x}, std::move(attributes), parts);
  return graph.node(id).outputs;
}

ValueId reshape_step(NodeImport& node, std::string_view name, ValueId x, const Integers& target) {
  return node.step(Op::kReshape, name, {x, integers_step(node, fmt::format("{}_shape", name), target)}, {{"allowzero", int64_t{0}}});
}

ValueId dim_step(NodeImport& node, std::string_view name, ValueId x, int64_t axis) {
  const ValueId shape = node.step(Op::kShape, fmt::format("{}_shape", name), {x});
  return node.step(Op::kGather, name, {shape, integers_step(node, fmt::format("{}_axis", name), {axis})}, {{"axis", int64_t{0}}});
}

void define_output(NodeImport& node, size_t i, ValueId value) {
  if (node.wants_output(i)) node.scope().define(node.proto().outputs[i], value);
}

ValueId add_step(NodeImport& node, std::string_view name, ValueId a, ValueId b) {
  if (a == graph::kNone || b == graph::kNone) return a == graph::kNone ? b : a;
  return node.step(Op::kAdd, name, {a, b});
}

}  // namespace serin::formats::onnx
