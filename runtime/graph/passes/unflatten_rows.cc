// unflatten_rows.cc
//
// torch's MultiheadAttention makes rows of its result for the last product, and shapes them back:
//
//   Reshape(x, [s * b, e]) -> x W + bias -> Reshape([s, b, e])   ->   Reshape(x, [s, b, e]) -> x W + bias
//
// A product by one matrix does the same to every row, however many axes count them. In s * b the items of a batch are not side by side, so
// that only the second form shows that they are independent; and a sum behind it can now become part of the product.

#include <algorithm>

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

/// x W + row for a square W, of rows of rank 2, read by nothing but one Reshape that keeps the last axis: that Reshape.
NodeId reshape_behind(const Graph& graph, NodeId product) {
  const Node& node = graph.node(product);
  const ConstantPtr weight = graph.constant(graph.input(product, 1)), bias = graph.constant(graph.input(product, 2));
  if (!weight || weight->shape.rank() != 2 || weight->shape[0] != weight->shape[1] || graph.input(product, 3) != kNone) return kNone;
  if (node.integer("transA", 0) != 0 || (graph.input(product, 2) != kNone && (!bias || bias->shape.rank() != 1))) return kNone;
  const NodeId behind = only_reader(graph, graph.output(product));
  if (!graph.is(behind, Op::kReshape) || graph.input(behind, 0) != graph.output(product)) return kNone;
  const Dims* const dims = dims_of_value(graph, graph.output(behind));
  return dims && dims->size() > 2 && dims->back() == Dim(weight->shape[1]) ? behind : kNone;
}

/// Whether the sizes name no axis of what is reshaped: a 0 would copy one.
bool copies_no_size(const Graph& graph, ValueId shape) {
  const ConstantPtr constant = graph.constant(shape);
  const auto sizes = constant ? integers_of(*constant) : std::nullopt;
  return !sizes || std::ranges::find(*sizes, 0) == sizes->end();
}

bool unflatten(Graph& graph, NodeId product) {
  const NodeId before = graph.producer(graph.input(product, 0));
  const Dims* const rows = dims_of_value(graph, graph.input(product, 0));
  if (!graph.is(before, Op::kReshape) || !rows || rows->size() != 2) return false;
  const NodeId behind = reshape_behind(graph, product);
  if (behind == kNone || !copies_no_size(graph, graph.input(behind, 1))) return false;
  Patch patch(graph, {product, behind});
  std::vector<ValueId> operands = graph.node(product).inputs;
  operands[0] = patch.add(Op::kReshape, {graph.input(before, 0), graph.input(behind, 1)}, graph.node(behind).attributes);
  patch.replace(graph.output(behind), patch.add(graph.node(product).op, operands, graph.node(product).attributes));
  return true;
}

}  // namespace

Result<bool> UnflattenRows::run(Graph& graph) const {
  bool changed = false;
  for (const Op op : {Op::kMatMul, Op::kFusedMatMul})
    for (const NodeId id : graph.nodes(op)) changed |= unflatten(graph, id);
  return changed;
}

}  // namespace serin::graph
