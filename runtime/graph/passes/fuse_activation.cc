// fuse_activation.cc
//
// An activation whose operand is a Conv or product that no other node reads is applied before the result is stored. The names and the
// meaning of alpha and beta are those of op.h; an activation that cannot be expressed with them (a Clip with computed bounds, a scaled
// Swish) stays.

#include <limits>

#include "runtime/graph/passes/fusible.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

struct Activation {
  std::string name;
  std::optional<double> alpha, beta;
};

std::optional<Activation> activation_of(const Node& node) {
  switch (node.op) {
    case Op::kRelu: return Activation{"Relu", {}, {}};
    case Op::kSigmoid: return Activation{"Sigmoid", {}, {}};
    case Op::kTanh: return Activation{"Tanh", {}, {}};
    case Op::kHardSwish: return Activation{"HardSwish", {}, {}};
    case Op::kLeakyRelu: return Activation{"LeakyRelu", node.number("alpha", 0.01), {}};
    case Op::kElu: return Activation{"Elu", node.number("alpha", 1), {}};
    case Op::kHardSigmoid: return Activation{"HardSigmoid", node.number("alpha", 0.2), node.number("beta", 0.5)};
    case Op::kGelu: return Activation{node.text("approximate", "none") == "tanh" ? "GeluTanh" : "Gelu", {}, {}};
    case Op::kSwish:
      if (node.number("alpha", 1) != 1) return std::nullopt;
      return Activation{"Swish", {}, {}};
    case Op::kClip: {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (node.inputs.size() > 1) return std::nullopt;  // bounds that are computed
      return Activation{"Clip", node.number("min", -kInfinity), node.number("max", kInfinity)};
    }
    default: return std::nullopt;
  }
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
    attributes["activation"] = activation->name;
    if (activation->alpha) attributes["alpha"] = *activation->alpha;
    if (activation->beta) attributes["beta"] = *activation->beta;
    const ValueId y = patch.add(fused_op(graph.node(producer).op), graph.node(producer).inputs, std::move(attributes));
    patch.replace(graph.output(id), y);
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph
