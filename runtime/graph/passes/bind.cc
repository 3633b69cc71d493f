// bind: makes the same model for one set of sizes. Shapes are inferred again on numbers, which checks the conditions that symbols left
// open. Every value that was computed from shapes becomes a constant.

#include <fmt/format.h>

#include "runtime/graph/passes/passes.h"

namespace serin::graph {

Result<Graph> bind(const Graph& graph, const Bindings& bindings) {
  for (const auto& [symbol, value] : bindings) {
    if (value < 0) return Error{Code::kInvalidArgument, fmt::format("dimension '{}' is bound to {}, it cannot be negative", symbol, value)};
  }
  Graph bound = graph;
  for (const ValueId id : bound.inputs()) {
    auto& shape = bound.value(id).type.shape;
    if (shape) shape = serin::graph::bind(*shape, bindings);
    const auto known = shape ? known_shape(*shape) : std::nullopt;
    if (known && (!known->checked_elements() || *known->checked_elements() > kMaxElements)) {
      return Error{Code::kTooLarge, fmt::format("input '{}' would have shape {}, more than the limit of {} elements", bound.value(id).name,
                                                known->str(), kMaxElements)};
    }
  }
  SERIN_CHECK(infer_shapes(bound));
  SERIN_CHECK(FoldShapes().run(bound));
  SERIN_CHECK(ConstantOperands().run(bound));
  SERIN_CHECK(DeadCode().run(bound));
  bound.compact();
  SERIN_CHECK(infer_shapes(bound));
  return bound;
}

}  // namespace serin::graph
