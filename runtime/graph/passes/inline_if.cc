// inline_if.cc
//
// An If whose condition is known is its branch: the body's nodes move into the graph, its inputs are what the node was given.
// torch exports one around every squeeze whose dimension it could not see.

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"

namespace serin::graph {
namespace {

/// The body's nodes copied into `graph`; returns what its outputs became.
Result<std::vector<ValueId>> inline_body(Graph& graph, const Graph& body, const std::vector<ValueId>& operands) {
  std::vector<ValueId> moved(body.value_capacity(), kNone);
  for (size_t i = 0; i < body.inputs().size(); ++i) moved[static_cast<size_t>(body.inputs()[i])] = operands[i];
  const auto move_value = [&](ValueId id) {
    if (id == kNone) return kNone;
    ValueId& there = moved[static_cast<size_t>(id)];
    if (there == kNone && body.constant(id)) there = graph.add_constant(body.value(id).name, body.constant(id));
    return there;
  };
  SERIN_TRY(const auto order, body.topological_order());
  for (const NodeId id : order) {
    const Node& node = body.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId read : node.inputs) inputs.push_back(move_value(read));
    const NodeId copy = graph.add_node(node.op, node.name, std::move(inputs), node.attributes, node.outputs.size());
    graph.node(copy).bodies = node.bodies;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) {
        graph.connect(copy, i, kNone);
        continue;
      }
      const ValueId made = graph.output(copy, i);
      graph.value(made).name = body.value(node.outputs[i]).name;
      graph.value(made).type = body.value(node.outputs[i]).type;
      moved[static_cast<size_t>(node.outputs[i])] = made;
    }
  }
  std::vector<ValueId> outputs;
  for (const ValueId id : body.outputs()) outputs.push_back(move_value(id));
  return outputs;
}

}  // namespace

Result<bool> InlineIf::run(Graph& graph) const {
  bool changed = false;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {  // grows: an inlined body may have an If of its own
    const auto id = static_cast<NodeId>(i);
    if (!graph.is(id, Op::kIf)) continue;
    const auto condition = known_number(graph, graph.input(id, 0));
    if (!condition) continue;
    const auto body = graph.node(id).bodies[*condition != 0 ? 0 : 1];
    const auto operands = std::vector<ValueId>(graph.node(id).inputs.begin() + 1, graph.node(id).inputs.end());
    SERIN_TRY(const auto results, inline_body(graph, *body, operands));
    for (size_t result = 0; result < results.size(); ++result) {
      if (graph.output(id, result) != kNone) graph.replace_uses(graph.output(id, result), results[result]);
    }
    graph.remove(id);
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph
