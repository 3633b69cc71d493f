// fold_shapes.cc
//
// Shape inference computes small integers along the way (Shape, Gather, Concat, Mul ...). Where all elements of such a value are numbers, it
// becomes a constant; the nodes that computed it are left to dead_code. Needs no kernels. A value with a symbol in it stays: it is known only
// after `bind`.

#include "runtime/graph/ops/infer.h"
#include "runtime/graph/passes/passes.h"

namespace serin::graph {

Result<bool> FoldShapes::run(Graph& graph) const {
  SERIN_TRY(const ShapeValues values, infer_shapes_and_values(graph));
  bool changed = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (!values[i] || graph.producer(id) == kNone || graph.reader_count(id) == 0) continue;
    ConstantPtr constant = constant_of(graph.value(id).type, *values[i]);
    if (!constant) continue;
    graph.replace_uses(id, graph.add_constant(graph.value(id).name, std::move(constant)));
    changed = true;
  }
  if (changed) SERIN_CHECK(DeadCode().run(graph));
  return changed;
}

}  // namespace serin::graph
