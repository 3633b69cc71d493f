// fuse_rms_norm.cc
//
// RMSNormalization over the last axis, as exporters before opset 23 spell it (Llama, T5):
//
//   y = scale * (x * (1 / sqrt(mean(x * x) + eps)))   or   x / sqrt(...)
//
// with the factors in either order; the square is Pow(x, 2) or x * x, the inverse Reciprocal or 1 / ...

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

ValueId squared(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  const bool square = (graph.is(id, Op::kPow) && is_number(graph, graph.input(id, 1), 2)) ||
                      (graph.is(id, Op::kMul) && graph.input(id, 0) == graph.input(id, 1));
  return square ? graph.input(id, 0) : kNone;
}

/// sqrt(mean(x * x) + eps).
struct Root {
  ValueId x = kNone;
  double epsilon = 0;
};

std::optional<Root> root_of(const Graph& graph, ValueId value) {
  const NodeId sqrt = graph.producer(value);
  if (!graph.is(sqrt, Op::kSqrt)) return std::nullopt;
  const NodeId plus = graph.producer(graph.input(sqrt, 0));
  if (!graph.is(plus, Op::kAdd)) return std::nullopt;
  const size_t at = known_number(graph, graph.input(plus, 0)) ? 0 : 1;
  const auto epsilon = known_number(graph, graph.input(plus, at));
  const NodeId mean = graph.producer(graph.input(plus, 1 - at));
  if (!epsilon || !is_mean_over_last_axis(graph, mean)) return std::nullopt;
  const ValueId x = squared(graph, graph.input(mean, 0));
  return x == kNone ? std::nullopt : std::optional(Root{x, *epsilon});
}

/// The root whose inverse `value` is.
std::optional<Root> inverse_root(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  if (graph.is(id, Op::kReciprocal)) return root_of(graph, graph.input(id, 0));
  if (graph.is(id, Op::kDiv) && is_number(graph, graph.input(id, 0), 1)) return root_of(graph, graph.input(id, 1));
  return std::nullopt;
}

/// x over its root, at this node.
std::optional<Root> normalised(const Graph& graph, NodeId id) {
  if (graph.is(id, Op::kDiv)) {
    const auto root = root_of(graph, graph.input(id, 1));
    return root && root->x == graph.input(id, 0) ? root : std::nullopt;
  }
  for (const size_t i : {0, 1}) {
    const auto root = inverse_root(graph, graph.input(id, i));
    if (root && root->x == graph.input(id, 1 - i)) return root;
  }
  return std::nullopt;
}

bool fuse(Graph& graph, NodeId id) {
  const auto root = normalised(graph, id);
  const NodeId last = root ? only_reader(graph, graph.output(id)) : kNone;
  if (!graph.is(last, Op::kMul)) return false;
  const ValueId scale = other_operand(graph, last, graph.output(id));
  const ConstantPtr constant = graph.constant(scale);
  const Dims* const dims = dims_of_value(graph, root->x);
  if (!constant || !dims || constant->shape.rank() != 1 || !(Dim(constant->shape[0]) == dims->back())) return false;
  Patch patch(graph, {id, last});
  patch.replace(graph.output(last),
                patch.add(Op::kRMSNormalization, {root->x, scale}, {{"axis", int64_t{-1}}, {"epsilon", root->epsilon}}));
  return true;
}

}  // namespace

Result<bool> FuseRmsNorm::run(Graph& graph) const {
  bool changed = false;
  for (const Op op : {Op::kMul, Op::kDiv}) {
    for (const NodeId id : graph.nodes(op)) changed |= graph.is(id, op) && fuse(graph, id);
  }
  if (changed) SERIN_CHECK(DeadCode().run(graph));
  return changed;
}

}  // namespace serin::graph
