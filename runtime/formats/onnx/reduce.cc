// reduce.cc: reads operators along axes.

#include <fmt/format.h>

#include "runtime/formats/onnx/operands.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

using graph::Op;

namespace {

/// What a reduction over no axis is: the function applied to each element alone.
void emit_reduction_over_nothing(NodeImport& node, Op op) {
  switch (op) {
    case Op::kReduceL1:
    case Op::kReduceL2: node.emit(Op::kAbs, {node.input(0)}); break;
    case Op::kReduceSumSquare: node.emit(Op::kMul, {node.input(0), node.input(0)}); break;
    default: node.emit(Op::kIdentity, {node.input(0)}); break;
  }
}

struct Reduction {
  graph::ValueId axes = graph::kNone;  ///< where they are computed
  graph::Attributes attributes;
  bool nothing = false;  ///< no axes, and that means none, not all
};

Reduction reduction_of(NodeImport& node) {
  Reduction reduction;
  reduction.axes = integers_or_operand(node, 1, "axes", reduction.attributes);
  const auto axes = reduction.attributes.find("axes");
  const bool none = axes != reduction.attributes.end() && std::get<std::vector<int64_t>>(axes->second).empty();
  if (none) reduction.attributes.erase(axes);
  const bool known_absent = none || (reduction.axes == graph::kNone && !reduction.attributes.contains("axes"));
  const bool noop = node.flag("noop_with_empty_axes", false);
  reduction.attributes.emplace("keepdims", node.integer("keepdims", 1));
  if (noop && reduction.axes != graph::kNone) reduction.attributes.emplace("noop_with_empty_axes", int64_t{1});
  reduction.nothing = noop && known_absent;
  return reduction;
}

}  // namespace

void import_reduce(NodeImport& node, Op op) {
  Reduction reduction = reduction_of(node);
  if (reduction.nothing) return emit_reduction_over_nothing(node, op);
  node.emit(op, {node.input(0), reduction.axes}, std::move(reduction.attributes));
}

void import_reduce_log_sum(NodeImport& node, Op op) {
  Reduction reduction = reduction_of(node);
  if (reduction.nothing) {
    node.emit(op, {node.input(0)});
    return;
  }
  std::vector<graph::ValueId> operands = {node.input(0)};
  if (reduction.axes != graph::kNone) operands.push_back(reduction.axes);
  node.emit(op, {node.step(Op::kReduceSum, "sum", std::move(operands), std::move(reduction.attributes))});
}

void import_arg(NodeImport& node, Op op) {
  node.emit(op, {node.input(0)},
            {{"axis", node.integer("axis", 0)},
             {"keepdims", node.integer("keepdims", 1)},
             {"select_last_index", node.integer("select_last_index", 0)}});
}

/// Since opset 13 along one axis. Before, over all axes from `axis` on at once: flattened to a matrix, row by row, and given its shape back.
void import_softmax(NodeImport& node, Op op) {
  const int64_t axis = node.integer("axis", node.opset() < 13 ? 1 : -1);
  if (node.opset() >= 13 || axis == -1) {
    node.emit(op, {node.input(0)}, {{"axis", axis}});
    return;
  }
  if (const auto rank = node.rank(0); rank && axis == static_cast<int64_t>(*rank) - 1) {
    node.emit(op, {node.input(0)}, {{"axis", int64_t{-1}}});
    return;
  }
  const graph::ValueId dims = node.step(Op::kShape, "shape", {node.input(0)});
  const graph::ValueId rows = node.step(Op::kFlatten, "rows", {node.input(0)}, {{"axis", axis}});
  const graph::ValueId softmax = node.step(op, "softmax", {rows}, {{"axis", int64_t{-1}}});
  node.emit(Op::kReshape, {softmax, dims}, {{"allowzero", int64_t{1}}});  // a dimension of 0 is one, not "as before"
}

void import_cumsum(NodeImport& node, Op op) {
  node.emit(op, node.inputs(), {{"exclusive", node.integer("exclusive", 0)}, {"reverse", node.integer("reverse", 0)}});
}

}  // namespace serin::formats::onnx
