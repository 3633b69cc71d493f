// fuse_activation.cc
//
// An activation (`epilogue` in kernels/functions.def) whose operand is a Conv or product that no other node reads is applied before the result is stored. The names and the
// meaning of alpha and beta are those of op.h; an activation that cannot be expressed with them (a Clip with computed bounds, a scaled
// Swish) stays.

#include "runtime/graph/function.h"
#include "runtime/graph/passes/fusible.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

std::optional<UnaryFunction> activation_of(const Node& node) {
  const auto function = unary_function_of(node);
  return function && function->row->follows ? function : std::nullopt;
}

}  // namespace

Result<bool> FuseActivation::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId id : graph.nodes()) {
    const auto activation = activation_of(graph.node(id));
    if (!activation) continue;
    const NodeId producer = fusible_producer(graph, graph.input(id, 0));
    if (producer == kNone) continue;

    Patch patch(graph, {producer, id});
    Attributes attributes = graph.node(producer).attributes;
    attributes["activation"] = std::string(activation->row->word);
    if (activation->alpha) attributes["alpha"] = *activation->alpha;
    if (activation->beta) attributes["beta"] = *activation->beta;
    const ValueId y = patch.add(fused_op(graph.node(producer).op), graph.node(producer).inputs, std::move(attributes));
    patch.replace(graph.output(id), y);
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph
