// constant_folding.cc
//
// Computes at load the values that are the same in every run: a transposed weight, the square root of a width. In topological order, so
// that a chain folds in one walk. A CastLike becomes a Cast first: it reads only the type of its second operand, which is known here.

#include <algorithm>

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

constexpr int64_t kBudget = int64_t{4} << 20;

bool all_known(const Graph& graph, const Node& node) {
  return std::ranges::all_of(node.inputs, [&](ValueId id) { return id == kNone || graph.constant(id); });
}

/// Bytes that folding adds to the model: its operands go where nobody else reads them. Nothing where a result has no fixed size.
std::optional<int64_t> growth(const Graph& graph, const Node& node) {
  int64_t bytes = 0;
  for (const ValueId made : node.outputs) {
    if (made == kNone) continue;
    const Type& type = graph.value(made).type;
    const auto shape = type.shape ? known_shape(*type.shape) : std::nullopt;
    if (!shape || type.kind != ValueKind::kTensor || dtype_size(type.dtype) == 0) return std::nullopt;
    bytes += shape->elements() * static_cast<int64_t>(dtype_size(type.dtype));
  }
  for (const ValueId read : node.inputs) {
    if (read != kNone && graph.reader_count(read) == 1) bytes -= static_cast<int64_t>(graph.constant(read)->bytes());
  }
  return bytes;
}

bool name_types(Graph& graph) {
  bool changed = false;
  for (const NodeId id : graph.nodes(Op::kCastLike)) {
    const DType to = graph.value(graph.input(id, 1)).type.dtype;
    if (to == DType::kUndefined) continue;
    Attributes attributes = graph.node(id).attributes;
    attributes.insert_or_assign("to", std::string(dtype_name(to)));
    Patch patch(graph, {id});
    patch.replace(graph.output(id), patch.add(Op::kCast, {graph.input(id, 0)}, std::move(attributes)));
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> ConstantFolding::run(Graph& graph) const {
  if (!evaluate_) return false;
  bool changed = name_types(graph);
  SERIN_TRY(const auto order, graph.topological_order());
  int64_t budget = kBudget;
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    if (!node.bodies.empty() || node.op == Op::kNonZero || !all_known(graph, node)) continue;
    const auto more = growth(graph, node);
    if (!more || *more > budget) continue;
    const auto results = evaluate_(graph, id);
    if (!results) continue;  // no kernel for it: it stays, and is refused by name when it must run
    budget -= std::max<int64_t>(*more, 0);
    const std::vector<ValueId> made = node.outputs;
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i] == kNone) continue;
      graph.replace_uses(made[i], graph.add_constant(graph.value(made[i]).name, (*results)[i]));
    }
    graph.remove(id);
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph
