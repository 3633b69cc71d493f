// root_mean_square.h: pattern queries that LayerNormalization and RMSNormalization share.
#pragma once

#include "runtime/graph/passes/match.h"

namespace serin::graph {

inline bool is_mean_over_last_axis(const Graph& graph, NodeId id) {
  if (!graph.is(id, Op::kReduceMean) || graph.node(id).integer("keepdims", 1) == 0) return false;
  const Dims* dims = dims_of_value(graph, graph.input(id, 0));
  const auto axes = graph.node(id).integers("axes");
  return dims && axes.size() == 1 && (axes[0] == -1 || axes[0] == static_cast<int64_t>(dims->size()) - 1);
}

/// Returns x if `value` is x * x or Pow(x, 2); otherwise kNone.
inline ValueId squared_operand(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  const bool square = (graph.is(id, Op::kPow) && is_number(graph, graph.input(id, 1), 2)) ||
                      (graph.is(id, Op::kMul) && graph.input(id, 0) == graph.input(id, 1));
  return square ? graph.input(id, 0) : kNone;
}

/// sqrt(mean(x * x) + epsilon), the mean over the last axis.
struct RootMeanSquare {
  ValueId x = kNone;
  double epsilon = 0;
};

inline std::optional<RootMeanSquare> root_mean_square(const Graph& graph, ValueId value) {
  const NodeId sqrt = graph.producer(value);
  if (!graph.is(sqrt, Op::kSqrt)) return std::nullopt;
  const NodeId plus = graph.producer(graph.input(sqrt, 0));
  if (!graph.is(plus, Op::kAdd)) return std::nullopt;
  const size_t at = known_number(graph, graph.input(plus, 0)) ? 0 : 1;  // epsilon may be on either side
  const auto epsilon = known_number(graph, graph.input(plus, at));
  const NodeId mean = graph.producer(graph.input(plus, 1 - at));
  if (!epsilon || !is_mean_over_last_axis(graph, mean)) return std::nullopt;
  const ValueId x = squared_operand(graph, graph.input(mean, 0));
  return x == kNone ? std::nullopt : std::optional(RootMeanSquare{x, *epsilon});
}

/// Returns the constant by which `id`, an `op`, scales or shifts the last axis of `value`; kNone if it does not.
inline ValueId parameter_of_last_axis(const Graph& graph, NodeId id, Op op, ValueId value) {
  if (!graph.is(id, op)) return kNone;
  const ValueId other = other_operand(graph, id, value);
  const ConstantPtr constant = graph.constant(other);
  const Dims* dims = dims_of_value(graph, value);
  return constant && dims && constant->shape.rank() == 1 && Dim(constant->shape[0]) == dims->back() ? other : kNone;
}

}  // namespace serin::graph
