// units.cc: lists the operators for which the passes quantise_*.cc have a form on bytes.

#include "runtime/graph/int8/units.h"

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/quantised.h"

namespace serin::graph::int8 {
namespace {

/// A Relu, or a Clip that is one for numbers whose range was seen behind it.
bool is_relu(const Graph& graph, NodeId id) {
  if (graph.is(id, Op::kRelu)) return true;
  return graph.is(id, Op::kClip) && graph.node(id).inputs.size() == 1 && graph.node(id).number("min", 1) == 0;
}

}  // namespace

std::optional<UnitKind> kind_of(const Graph& graph, NodeId id) {
  const Op op = graph.node(id).op;
  switch (op) {
    case Op::kConv: return UnitKind::kConv;
    case Op::kMatMul:
    case Op::kGemm: return UnitKind::kProduct;
    case Op::kAdd:
    case Op::kMul: return UnitKind::kBinary;
    case Op::kGlobalAveragePool: return UnitKind::kPool;
    case Op::kConcat: return UnitKind::kConcat;
    case Op::kSplit: return UnitKind::kMover;
    default: break;
  }
  if (moves_bytes(op)) return UnitKind::kMover;
  if (has_table_of_bytes(op) && graph.node(id).inputs.size() == 1) return UnitKind::kFunction;
  return std::nullopt;
}

std::vector<size_t> byte_operands(const Graph& graph, NodeId id) {
  const auto kind = kind_of(graph, id);
  if (kind == UnitKind::kBinary) return {0, 1};
  if (kind != UnitKind::kConcat) return {0};
  std::vector<size_t> all;
  all.reserve(graph.node(id).inputs.size());
  for (size_t i = 0; i < graph.node(id).inputs.size(); ++i) all.push_back(i);
  return all;
}

std::vector<ValueId> byte_results(const Graph& graph, NodeId id) {
  const auto kind = kind_of(graph, id);
  if (kind == UnitKind::kProduct) return {};
  if (graph.is(id, Op::kSplit)) return graph.node(id).outputs;
  const ValueId made = graph.output(id);
  if (kind != UnitKind::kConv && kind != UnitKind::kBinary) return {made};
  const NodeId activation = only_reader(graph, made);
  return {is_relu(graph, activation) ? graph.output(activation) : made};
}

}  // namespace serin::graph::int8
