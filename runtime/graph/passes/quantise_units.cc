// quantise_units.cc: replaces quantised units that are not products by operators on bytes.
//
//   DequantizeLinear -> Reshape, Transpose, MaxPool ... -> QuantizeLinear, same scale   ->   the same operator on bytes: it only moves or picks them
//   DequantizeLinear -> QuantizeLinear, same scale                                      ->   nothing
//   two DequantizeLinear -> Add, Mul -> [Relu] -> QuantizeLinear                        ->   QuantizedBinary
//   DequantizeLinear -> GlobalAveragePool -> QuantizeLinear                             ->   QuantizedGlobalAveragePool

#include <algorithm>

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/quantised.h"

namespace serin::graph {
namespace {

bool quantise_mover(Graph& graph, NodeId mover) {
  const auto x = dequantised(graph, graph.input(mover, 0));
  const auto y = quantised_by(graph, graph.output(mover));
  if (!x || !y || !same_parameters(graph, *x, *y) || scale_of(graph, *x) <= 0) return false;
  Patch patch(graph, {mover, y->node});
  std::vector<ValueId> operands = graph.node(mover).inputs;
  operands[0] = x->q;
  patch.replace(y->q, patch.add(graph.node(mover).op, std::move(operands), graph.node(mover).attributes));
  return true;
}

/// A Split has several results: all of them must be quantised with the scale that comes in.
bool quantise_split(Graph& graph, NodeId split) {
  const auto x = dequantised(graph, graph.input(split, 0));
  if (!x || scale_of(graph, *x) <= 0) return false;
  std::vector<QuantisedValue> parts;
  for (const ValueId made : std::vector<ValueId>(graph.node(split).outputs)) {
    const auto part = made == kNone ? std::nullopt : quantised_by(graph, made);
    if (!part || !same_parameters(graph, *x, *part)) return false;
    parts.push_back(*part);
  }
  std::vector<ValueId> operands = graph.node(split).inputs;
  operands[0] = x->q;
  const NodeId fresh = graph.add_node(Op::kSplit, graph.node(split).name, std::move(operands), graph.node(split).attributes, parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const ValueId part = graph.output(fresh, i);
    graph.value(part).name = graph.value(parts[i].q).name;
    graph.value(part).type = graph.value(parts[i].q).type;
    graph.replace_uses(parts[i].q, part);
    graph.remove(parts[i].node);
  }
  graph.remove(split);
  return true;
}

bool drop_pair(Graph& graph, NodeId dequantise) {
  const auto x = dequantised(graph, graph.output(dequantise));
  if (!x) return false;
  bool changed = false;
  for (const NodeId reader : graph.readers(graph.output(dequantise))) {
    if (!graph.is(reader, Op::kQuantizeLinear) || graph.input(reader, 0) != graph.output(dequantise)) continue;
    const QuantisedValue y{reader, graph.output(reader), graph.input(reader, 1), graph.input(reader, 2)};
    if (!has_one_scale(graph, y) || !same_parameters(graph, *x, y) || scale_of(graph, *x) <= 0 || graph.is_output(y.q)) continue;
    graph.replace_uses(y.q, x->q);
    graph.remove(reader);
    changed = true;
  }
  return changed;
}

bool quantise_binary(Graph& graph, NodeId binary) {
  const auto a = dequantised(graph, graph.input(binary, 0)), b = dequantised(graph, graph.input(binary, 1));
  const auto y = quantised_result(graph, graph.output(binary));
  if (!a || !b || !y) return false;
  std::vector<NodeId> replaced{binary};
  replaced.insert(replaced.end(), y->nodes.begin(), y->nodes.end());
  Patch patch(graph, replaced);
  Attributes attributes{{"function", std::string(op_name(graph.node(binary).op))}};
  if (!y->activation.empty()) attributes["activation"] = y->activation;
  const ValueId a_zero = zero_point(graph, *a), b_zero = zero_point(graph, *b), y_zero = zero_point(graph, y->to);
  patch.replace(y->made(), patch.add(Op::kQuantizedBinary, {a->q, a->scale, a_zero, b->q, b->scale, b_zero, y->to.scale, y_zero},
                                     std::move(attributes)));
  return true;
}

bool quantise_global_pool(Graph& graph, NodeId pool) {
  const auto x = dequantised(graph, graph.input(pool, 0));
  const auto y = quantised_by(graph, graph.output(pool));
  if (!x || !y) return false;
  Patch patch(graph, {pool, y->node});
  const ValueId x_zero = zero_point(graph, *x), y_zero = zero_point(graph, *y);
  patch.replace(y->q, patch.add(Op::kQuantizedGlobalAveragePool, {x->q, x->scale, x_zero, y->scale, y_zero}, {}));
  return true;
}

}  // namespace

Result<bool> QuantiseUnits::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId id : graph.nodes()) changed |= moves_bytes(graph.node(id).op) && quantise_mover(graph, id);
  for (const NodeId split : graph.nodes(Op::kSplit)) changed |= quantise_split(graph, split);
  for (const NodeId dequantise : graph.nodes(Op::kDequantizeLinear)) changed |= drop_pair(graph, dequantise);
  for (const Op op : {Op::kAdd, Op::kMul}) {
    for (const NodeId binary : graph.nodes(op)) changed |= quantise_binary(graph, binary);
  }
  for (const NodeId pool : graph.nodes(Op::kGlobalAveragePool)) changed |= quantise_global_pool(graph, pool);
  return changed;
}

}  // namespace serin::graph
