// fuse_residual_add.cc
//
// act(conv(x) + r): the sum that closes a residual block is done while the result of the Conv (or product) is still in registers. r must have
// the shape of the result, proven for every batch; of two candidates the later one takes the other as its residual.

#include <algorithm>

#include "runtime/graph/passes/fusible.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {

Result<bool> FuseResidualAdd::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId add : graph.nodes(Op::kAdd)) {
    const NodeId a = fusible_producer(graph, graph.input(add, 0)), b = fusible_producer(graph, graph.input(add, 1));
    const NodeId id = std::max(a, b);
    if (id == kNone || graph.input(id, 3) != kNone) continue;
    const ValueId residual = other_operand(graph, add, graph.output(id));
    if (graph.constant(residual) || !same_type(graph, residual, graph.output(id))) continue;

    Patch patch(graph, {id, add});
    const Node& node = graph.node(id);
    const ValueId y = patch.add(fused_op(node.op), {graph.input(id, 0), graph.input(id, 1), graph.input(id, 2), residual}, node.attributes);
    patch.replace(graph.output(add), y);
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph
