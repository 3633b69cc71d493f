// dead_code.cc
//
// Removes nodes none of whose results is read, readers before producers, so that one walk is enough. No operator has side effects.

#include <algorithm>

#include "runtime/graph/passes/passes.h"

namespace serin::graph {

Result<bool> DeadCode::run(Graph& graph) const {
  SERIN_TRY(const auto order, graph.topological_order());
  bool changed = false;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const auto& outputs = graph.node(*id).outputs;
    if (std::ranges::any_of(outputs, [&](ValueId made) { return made != kNone && graph.reader_count(made) > 0; })) continue;
    graph.remove(*id);
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph
