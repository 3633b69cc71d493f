// fuse_layer_norm.cc
//
// LayerNormalization over the last axis, as exporters before opset 17 spell it:
//
//   d = x - mean(x)         v = mean(d * d)  or  mean(pow(d, 2))
//   y = d / sqrt(v + eps) * scale + bias
//
// d is sometimes computed twice. Matched from the division backwards and forwards.

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

bool is_mean_over_last_axis(const Graph& graph, NodeId id) {
  if (!graph.is(id, Op::kReduceMean) || graph.node(id).integer("keepdims", 1) == 0) return false;
  const Dims* dims = dims_of_value(graph, graph.input(id, 0));
  const auto axes = graph.node(id).integers("axes");
  return dims && axes.size() == 1 && (axes[0] == -1 || axes[0] == static_cast<int64_t>(dims->size()) - 1);
}

/// x, where `value` is x - mean(x); kNone otherwise.
ValueId centred(const Graph& graph, ValueId value) {
  const NodeId sub = graph.producer(value);
  if (!graph.is(sub, Op::kSub)) return kNone;
  const NodeId mean = graph.producer(graph.input(sub, 1));
  const ValueId x = graph.input(sub, 0);
  return is_mean_over_last_axis(graph, mean) && graph.input(mean, 0) == x ? x : kNone;
}

/// x, where `value` is the square of x - mean(x).
ValueId squared(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  const bool square = (graph.is(id, Op::kPow) && is_number(graph, graph.input(id, 1), 2)) ||
                      (graph.is(id, Op::kMul) && graph.input(id, 0) == graph.input(id, 1));
  return square ? centred(graph, graph.input(id, 0)) : kNone;
}

/// A constant of the last axis' size, the operand of `id` that is not `value`.
ValueId parameter(const Graph& graph, NodeId id, Op op, ValueId value) {
  if (!graph.is(id, op)) return kNone;
  const ValueId other = other_operand(graph, id, value);
  const ConstantPtr constant = graph.constant(other);
  const Dims* dims = dims_of_value(graph, value);
  return constant && dims && constant->shape.rank() == 1 && Dim(constant->shape[0]) == dims->back() ? other : kNone;
}

bool fuse(Graph& graph, NodeId div) {
  const NodeId sqrt = graph.producer(graph.input(div, 1));
  if (!graph.is(sqrt, Op::kSqrt)) return false;
  const NodeId plus = graph.producer(graph.input(sqrt, 0));
  if (!graph.is(plus, Op::kAdd)) return false;
  const size_t at = known_number(graph, graph.input(plus, 0)) ? 0 : 1;  // eps may stand on either side
  const auto epsilon = known_number(graph, graph.input(plus, at));
  const NodeId variance = graph.producer(graph.input(plus, 1 - at));
  if (!epsilon || !is_mean_over_last_axis(graph, variance)) return false;
  const ValueId x = centred(graph, graph.input(div, 0));
  if (x == kNone || squared(graph, graph.input(variance, 0)) != x) return false;

  const NodeId mul = only_reader(graph, graph.output(div));
  const ValueId scale = parameter(graph, mul, Op::kMul, graph.output(div));
  if (scale == kNone) return false;
  const NodeId add = only_reader(graph, graph.output(mul));
  const ValueId bias = parameter(graph, add, Op::kAdd, graph.output(mul));
  const NodeId last = bias == kNone ? mul : add;

  // The rest (mean, difference, square ...) is dead afterwards, unless it is read elsewhere: dead_code decides.
  Patch patch(graph, last == mul ? std::vector<NodeId>{div, mul} : std::vector<NodeId>{div, mul, add});
  patch.replace(graph.output(last), patch.add(Op::kLayerNormalization, {x, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", *epsilon}}));
  return true;
}

}  // namespace

Result<bool> FuseLayerNorm::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId div : graph.nodes(Op::kDiv)) changed |= fuse(graph, div);
  if (changed) SERIN_CHECK(DeadCode().run(graph));
  return changed;
}

}  // namespace serin::graph
