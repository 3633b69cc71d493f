// fuse_matmul_add.cc
//
// A product to which a constant of one row is added: the row is the bias of a FusedMatMul. Only where the sum has the shape of the product.

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

/// The product that `value` is, read once and without a bias yet.
NodeId bare_product(const Graph& graph, ValueId value) {
  if (const NodeId id = only_producer(graph, value, Op::kMatMul); id != kNone) return id;
  const NodeId id = only_producer(graph, value, Op::kFusedMatMul);
  const bool bare =
      id != kNone && graph.input(id, 2) == kNone && graph.input(id, 3) == kNone && graph.node(id).text("activation", "").empty();
  return bare ? id : kNone;
}

bool is_row(const Constant& constant, const Dim& width) {
  return constant.shape.rank() > 0 && constant.elements() == constant.shape.back() && Dim(constant.shape.back()) == width;
}

}  // namespace

Result<bool> FuseMatMulAdd::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId add : graph.nodes(Op::kAdd)) {
    for (const size_t i : {0, 1}) {
      const NodeId product = bare_product(graph, graph.input(add, i));
      const ValueId bias = graph.input(add, 1 - i);
      if (product == kNone || !graph.constant(bias) || !same_type(graph, graph.output(product), graph.output(add))) continue;
      const Dims* dims = dims_of_value(graph, graph.output(add));
      if (dims->empty() || !is_row(*graph.constant(bias), dims->back())) continue;

      Patch patch(graph, {product, add});
      const ValueId y =
          patch.add(Op::kFusedMatMul, {graph.input(product, 0), graph.input(product, 1), bias}, graph.node(product).attributes);
      patch.replace(graph.output(add), y);
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace serin::graph
