// bind_sizes.cc: folds constants and infers shapes in turns, while something is unknown and something changes. Folding makes elements
// known, elements make shapes known, shapes make more foldable. Where all is known after the first bind, which is the usual case, this
// costs a look at each value.

#include "runtime/engine/plan/bind_sizes.h"

#include <algorithm>

#include "runtime/graph/passes/passes.h"

namespace serin::engine {

namespace {

constexpr int kMostRounds = 32;  // chains of sizes, each of which needs the one before

bool has_unknown_sizes(const graph::Graph& graph) {
  const auto unknown = [&](graph::ValueId id) {
    if (id == graph::kNone) return false;
    const graph::Type& type = graph.value(id).type;
    return type.kind == graph::ValueKind::kTensor && !(type.shape && graph::known_shape(*type.shape));
  };
  return std::ranges::any_of(graph.nodes(), [&](graph::NodeId id) { return std::ranges::any_of(graph.node(id).outputs, unknown); });
}

}  // namespace

Result<graph::Graph> bind_sizes(const graph::Graph& graph, const graph::Bindings& bindings, const Folder& folder) {
  SERIN_TRY(graph::Graph bound, graph::bind(graph, bindings));
  const graph::ConstantFolding folding([&](const graph::Graph& g, graph::NodeId node) { return folder.evaluate(g, node); });
  for (int round = 0; round < kMostRounds && has_unknown_sizes(bound); ++round) {
    SERIN_TRY(const bool changed, folding.run(bound));
    if (!changed) break;
    SERIN_TRY(bound, graph::bind(bound, {}));
  }
  return bound;
}

}  // namespace serin::engine
