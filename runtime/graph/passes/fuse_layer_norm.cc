// fuse_layer_norm.cc
//
// LayerNormalization over the last axis, as exporters before opset 17 spell it:
//
//   d = x - mean(x)         v = mean(d * d)  or  mean(pow(d, 2))
//   y = d / sqrt(v + eps) * scale + bias
//
// d is sometimes computed twice. Matched from the division backwards and forwards.

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/root_mean_square.h"

namespace serin::graph {
namespace {

/// x, where `value` is x - mean(x); kNone otherwise.
ValueId centred(const Graph& graph, ValueId value) {
  const NodeId sub = graph.producer(value);
  if (!graph.is(sub, Op::kSub)) return kNone;
  const NodeId mean = graph.producer(graph.input(sub, 1));
  const ValueId x = graph.input(sub, 0);
  return is_mean_over_last_axis(graph, mean) && graph.input(mean, 0) == x ? x : kNone;
}

bool fuse_division(Graph& graph, NodeId div) {
  const auto deviation = root_mean_square(graph, graph.input(div, 1));
  const ValueId x = centred(graph, graph.input(div, 0));
  if (!deviation || x == kNone || centred(graph, deviation->x) != x) return false;

  const NodeId mul = only_reader(graph, graph.output(div));
  const ValueId scale = parameter_of_last_axis(graph, mul, Op::kMul, graph.output(div));
  if (scale == kNone) return false;
  const NodeId add = only_reader(graph, graph.output(mul));
  const ValueId bias = parameter_of_last_axis(graph, add, Op::kAdd, graph.output(mul));
  const NodeId last = bias == kNone ? mul : add;

  // The rest (mean, difference, square ...) is dead afterwards, unless it is read elsewhere: dead_code decides.
  Patch patch(graph, last == mul ? std::vector<NodeId>{div, mul} : std::vector<NodeId>{div, mul, add});
  patch.replace(graph.output(last),
                patch.add(Op::kLayerNormalization, {x, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", deviation->epsilon}}));
  return true;
}

}  // namespace

Result<bool> FuseLayerNorm::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId div : graph.nodes(Op::kDiv)) changed |= fuse_division(graph, div);
  if (changed) SERIN_CHECK(DeadCode().run(graph));
  return changed;
}

}  // namespace serin::graph
