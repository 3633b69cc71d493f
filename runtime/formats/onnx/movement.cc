// movement.cc: operators that move elements and compute none. Ranges and permutations are checked by shape inference, which knows the ranks.

#include <fmt/format.h>

#include <numeric>

#include "runtime/formats/onnx/operands.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

using graph::Op;

/// Exporters pass shared weights through Identity; seen through, they stay weights to whoever wants a constant operand.
void import_identity(NodeImport& node, Op op) {
  if (const auto constant = node.constant(0)) return node.emit_constant(0, constant);
  node.emit(op, {node.input(0)});
}

void import_concat(NodeImport& node, Op op) { node.emit(op, node.inputs(), {{"axis", node.required_integer("axis")}}); }

void import_flatten(NodeImport& node, Op op) { node.emit(op, {node.input(0)}, {{"axis", node.integer("axis", 1)}}); }

void import_gather(NodeImport& node, Op op) { node.emit(op, node.inputs(), {{"axis", node.integer("axis", 0)}}); }

/// Attributes before opset 11, operands since; `axes` since 18.
void import_pad(NodeImport& node, Op op) {
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") return node.corrupt(fmt::format("mode is '{}'", mode));
  graph::Attributes attributes{{"mode", mode}};
  const graph::ValueId pads = integers_or_operand(node, 1, "pads", attributes);
  const graph::ValueId axes = integers_or_operand(node, 3, "axes", attributes);
  if (pads == graph::kNone && !attributes.contains("pads")) node.corrupt("has no pads");

  graph::ValueId value = node.input(2);
  if (node.opset() < 11) attributes.emplace("value", node.number("value", 0));
  if (const auto constant = node.constant(2)) {
    if (const auto number = graph::number_of(*constant)) {
      attributes.emplace("value", *number);
      value = graph::kNone;
    }
  }
  node.emit(op, {node.input(0), pads, value, axes}, std::move(attributes));
}

void import_reshape(NodeImport& node, Op op) { node.emit(op, node.inputs(), {{"allowzero", node.integer("allowzero", 0)}}); }

/// All dimensions, or those from start to end (since opset 15).
void import_shape(NodeImport& node, Op op) {
  if (!node.has("start") && !node.has("end")) {
    node.emit(op, {node.input(0)});
    return;
  }
  const graph::ValueId whole = node.step(op, "whole", {node.input(0)});
  const int64_t end = node.integer("end", std::numeric_limits<int64_t>::max());
  using Int64s = std::vector<int64_t>;
  node.emit(Op::kSlice, {whole},
            {{"starts", Int64s{node.integer("start", 0)}}, {"ends", Int64s{end}}, {"axes", Int64s{0}}, {"steps", Int64s{1}}});
}

/// Attributes before opset 10, operands since. Axes and steps that are left out are written out where the starts say how many there are.
void import_slice(NodeImport& node, Op op) {
  graph::Attributes attributes;
  std::vector<graph::ValueId> operands = {node.input(0)};
  size_t i = 1;
  for (const std::string_view key : {"starts", "ends", "axes", "steps"})
    operands.push_back(integers_or_operand(node, i++, key, attributes));
  const auto given = [&](std::string_view key, size_t operand) { return attributes.contains(key) || operands[operand] != graph::kNone; };
  if (!given("starts", 1) || !given("ends", 2)) return node.corrupt("has no starts or no ends");

  if (const auto starts = attributes.find("starts"); starts != attributes.end()) {
    const size_t count = std::get<std::vector<int64_t>>(starts->second).size();
    std::vector<int64_t> axes(count);
    std::iota(axes.begin(), axes.end(), 0);
    if (!given("axes", 3)) attributes.emplace("axes", std::move(axes));
    if (!given("steps", 4)) attributes.emplace("steps", std::vector<int64_t>(count, 1));
  }
  node.emit(op, std::move(operands), std::move(attributes));
}

/// Sizes: an attribute before opset 13, an operand since. Without them equal parts, of which the last may be smaller since opset 18.
void import_split(NodeImport& node, Op op) {
  graph::Attributes attributes{{"axis", node.integer("axis", 0)}};
  const graph::ValueId sizes = integers_or_operand(node, 1, "split", attributes);
  const auto parts = static_cast<int64_t>(node.output_count());
  if (node.opset() >= 18 && node.integer("num_outputs", parts) != parts)
    node.corrupt(fmt::format("num_outputs is not the number of outputs, {}", parts));
  if (const auto found = attributes.find("split"); found != attributes.end()) {
    const size_t count = std::get<std::vector<int64_t>>(found->second).size();
    if (count != node.output_count()) node.corrupt(fmt::format("splits into {} parts, has {} outputs", count, parts));
  }
  node.emit(op, {node.input(0), sizes}, std::move(attributes));
}

/// Squeeze and Unsqueeze. Axes: an attribute before opset 13, an operand since.
void import_squeeze(NodeImport& node, Op op) {
  graph::Attributes attributes;
  const graph::ValueId axes = integers_or_operand(node, 1, "axes", attributes);
  if (op == Op::kUnsqueeze && axes == graph::kNone && !attributes.contains("axes")) node.corrupt("has no axes");
  node.emit(op, {node.input(0), axes}, std::move(attributes));
}

void import_transpose(NodeImport& node, Op op) {
  graph::Attributes attributes;
  if (auto perm = node.integers("perm")) attributes.emplace("perm", std::move(*perm));
  node.emit(op, {node.input(0)}, std::move(attributes));
}

}  // namespace serin::formats::onnx
