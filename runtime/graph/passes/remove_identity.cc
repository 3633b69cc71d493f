// remove_identity.cc
//
// Nodes whose result is their operand: Identity, a Cast to the type that is there, a Reshape (Expand, Slice, Tile, Pad ...) to the shape that
// is there. That the shapes are equal is proven on the polynomials, so it holds for every batch and length. A Transpose moves elements even
// where the shape stays, so its permutation is looked at; a Slice with a step of 1 and the same shape can only take everything.

#include <algorithm>

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"

namespace serin::graph {
namespace {

bool keeps_order(const Node& node) {
  const auto perm = node.integers("perm");
  return !perm.empty() && std::ranges::is_sorted(perm);
}

bool takes_everything(const Graph& graph, NodeId id) {
  const auto steps = graph.node(id).integers("steps");
  return graph.input(id, 4) == kNone && std::ranges::all_of(steps, [](int64_t step) { return step == 1; });
}

bool pads_nothing(const Node& node) {
  const auto pads = node.integers("pads");
  return !pads.empty() && std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; });
}

bool is_identity(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  switch (node.op) {
    case Op::kIdentity: return true;
    case Op::kCast: return graph.value(node.inputs[0]).type.dtype == graph.value(node.outputs[0]).type.dtype;
    case Op::kReshape:
    case Op::kFlatten:
    case Op::kExpand:
    case Op::kTile:
    case Op::kSqueeze:
    case Op::kUnsqueeze: return same_type(graph, node.inputs[0], node.outputs[0]);
    case Op::kSlice: return takes_everything(graph, id) && same_type(graph, node.inputs[0], node.outputs[0]);
    case Op::kPad: return pads_nothing(node);
    case Op::kTranspose: return keeps_order(node);
    case Op::kConcat:
    case Op::kSum:
    case Op::kMean:
    case Op::kMax:
    case Op::kMin: return node.inputs.size() == 1;
    default: return false;
  }
}

}  // namespace

Result<bool> RemoveIdentity::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId id : graph.nodes()) {
    if (!is_identity(graph, id)) continue;
    graph.replace_uses(graph.output(id), graph.input(id, 0));
    graph.remove(id);
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph
