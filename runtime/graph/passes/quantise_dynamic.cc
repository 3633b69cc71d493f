// quantise_dynamic.cc
//
//   q, s, z = DynamicQuantizeLinear(x);  MatMulInteger(q, w, z, wz) -> Cast -> Mul(s * ws) -> [Add bias]   ->   DynamicQuantizeMatMul(x, w, ws, wz, bias)
//
// what quantisers without calibration write for every product of a transformer. The scales' product may stand as Mul(s, ws), or one after the other.

#include <algorithm>

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/quantised.h"

namespace serin::graph {
namespace {

bool is_f32_constant(const Graph& graph, ValueId value, int64_t elements) {
  const ConstantPtr constant = graph.constant(value);
  return constant && constant->dtype == DType::kFloat32 && (constant->elements() == 1 || constant->elements() == elements);
}

/// The constant scale w of `scale` = Mul(s, w), kNone where it is none.
ValueId weight_scale(const Graph& graph, ValueId scale, ValueId x_scale, int64_t columns) {
  const NodeId mul = graph.producer(scale);
  if (!graph.is(mul, Op::kMul)) return kNone;
  const ValueId other = other_operand(graph, mul, x_scale);
  return other != kNone && is_f32_constant(graph, other, columns) ? other : kNone;
}

bool fuse(Graph& graph, NodeId product) {
  const NodeId quantise = graph.producer(graph.input(product, 0));
  const ConstantPtr weight = graph.constant(graph.input(product, 1));
  if (!graph.is(quantise, Op::kDynamicQuantizeLinear) || !weight || weight->shape.rank() != 2) return false;
  if (graph.input(product, 0) != graph.output(quantise, 0) || graph.input(product, 2) != graph.output(quantise, 2)) return false;
  const ValueId w_zero = graph.input(product, 3);
  if (w_zero != kNone && !graph.constant(w_zero)) return false;
  const int64_t columns = weight->shape[1];

  const NodeId cast = only_reader(graph, graph.output(product));
  const NodeId mul = graph.is(cast, Op::kCast) && graph.node(cast).text("to", "") == "f32" ? only_reader(graph, graph.output(cast)) : kNone;
  if (!graph.is(mul, Op::kMul)) return false;
  const ValueId scale = other_operand(graph, mul, graph.output(cast));
  const ValueId w_scale = weight_scale(graph, scale, graph.output(quantise, 1), columns);
  if (w_scale == kNone || !same_type(graph, graph.output(cast), graph.output(mul))) return false;

  const NodeId add = only_reader(graph, graph.output(mul));
  ValueId bias = graph.is(add, Op::kAdd) ? other_operand(graph, add, graph.output(mul)) : kNone;
  if (bias != kNone && (!is_row(graph, bias, columns) || !same_type(graph, graph.output(mul), graph.output(add)))) bias = kNone;

  const ValueId x = graph.input(quantise, 0);
  std::vector<NodeId> replaced{product, cast, mul};
  if (bias != kNone) replaced.push_back(add);
  const ValueId before = graph.output(bias != kNone ? add : mul);
  Patch patch(graph, replaced);
  patch.replace(before, patch.add(Op::kDynamicQuantizeMatMul, {x, graph.input(product, 1), w_scale, w_zero, bias}, {}));
  return true;
}

}  // namespace

Result<bool> QuantiseDynamic::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId product : graph.nodes(Op::kMatMulInteger)) changed |= fuse(graph, product);
  return changed;
}

}  // namespace serin::graph
