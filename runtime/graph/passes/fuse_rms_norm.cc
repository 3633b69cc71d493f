// fuse_rms_norm.cc
//
// RMSNormalization over the last axis, as exporters before opset 23 spell it (Llama, T5):
//
//   y = scale * (x * (1 / sqrt(mean(x * x) + eps)))   or   x / sqrt(...)
//
// with the factors in either order; the square is Pow(x, 2) or x * x, the inverse Reciprocal or 1 / ...

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/root_mean_square.h"

namespace serin::graph {
namespace {

/// The root whose inverse `value` is.
std::optional<RootMeanSquare> inverse_root(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  if (graph.is(id, Op::kReciprocal)) return root_mean_square(graph, graph.input(id, 0));
  if (graph.is(id, Op::kDiv) && is_number(graph, graph.input(id, 0), 1)) return root_mean_square(graph, graph.input(id, 1));
  return std::nullopt;
}

/// x over its root, at this node.
std::optional<RootMeanSquare> normalised(const Graph& graph, NodeId id) {
  if (graph.is(id, Op::kDiv)) {
    const auto root = root_mean_square(graph, graph.input(id, 1));
    return root && root->x == graph.input(id, 0) ? root : std::nullopt;
  }
  for (const size_t i : {0, 1}) {
    const auto root = inverse_root(graph, graph.input(id, i));
    if (root && root->x == graph.input(id, 1 - i)) return root;
  }
  return std::nullopt;
}

bool fuse_root(Graph& graph, NodeId id) {
  const auto root = normalised(graph, id);
  const NodeId last = root ? only_reader(graph, graph.output(id)) : kNone;
  const ValueId scale = parameter_of_last_axis(graph, last, Op::kMul, graph.output(id));
  if (scale == kNone) return false;
  Patch patch(graph, {id, last});
  patch.replace(graph.output(last),
                patch.add(Op::kRMSNormalization, {root->x, scale}, {{"axis", int64_t{-1}}, {"epsilon", root->epsilon}}));
  return true;
}

}  // namespace

Result<bool> FuseRmsNorm::run(Graph& graph) const {
  bool changed = false;
  for (const Op op : {Op::kMul, Op::kDiv}) {
    for (const NodeId id : graph.nodes(op)) changed |= graph.is(id, op) && fuse_root(graph, id);
  }
  if (changed) SERIN_CHECK(DeadCode().run(graph));
  return changed;
}

}  // namespace serin::graph
