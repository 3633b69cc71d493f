// fusible.h: finds the operators that later steps can be fused into: Conv and the products.
#pragma once

#include <optional>

#include "runtime/graph/passes/match.h"

namespace serin::graph {

/// Returns the Conv or product that computes `value`, if it has no other reader and no activation yet; otherwise kNone.
inline NodeId fusible_producer(const Graph& graph, ValueId value) {
  for (const Op op : {Op::kConv, Op::kFusedConv, Op::kMatMul, Op::kFusedMatMul}) {
    const NodeId id = only_producer(graph, value, op);
    if (id != kNone && graph.node(id).text("activation", "").empty() && graph.value(value).type.dtype == DType::kFloat32) return id;
  }
  return kNone;
}

inline Op fused_op(Op op) { return op == Op::kConv || op == Op::kFusedConv ? Op::kFusedConv : Op::kFusedMatMul; }

}  // namespace serin::graph
