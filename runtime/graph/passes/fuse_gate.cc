// fuse_gate.cc
//
//   x * sigmoid(x)                  -> Swish(x)
//   x * hardsigmoid(x, 1/6, 1/2)    -> HardSwish(x)
//
// The YOLO and EfficientNet families write the first, MobileNetV3 the second; as one activation it can move into the Conv before it.

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

std::optional<Op> gated(const Graph& graph, NodeId gate) {
  if (graph.is(gate, Op::kSigmoid)) return Op::kSwish;
  if (!graph.is(gate, Op::kHardSigmoid)) return std::nullopt;
  const Node& node = graph.node(gate);
  const bool same = std::abs(node.number("alpha", 0.2) - 1.0 / 6) < 1e-4 && std::abs(node.number("beta", 0.5) - 0.5) < 1e-6;
  return same ? std::optional(Op::kHardSwish) : std::nullopt;
}

}  // namespace

Result<bool> FuseGate::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId mul : graph.nodes(Op::kMul)) {
    for (const size_t i : {0, 1}) {
      const NodeId gate = graph.producer(graph.input(mul, i));
      const auto op = gated(graph, gate);
      if (!op || graph.input(gate, 0) != graph.input(mul, 1 - i) || graph.reader_count(graph.output(gate)) != 1) continue;
      Patch patch(graph, {gate, mul});
      patch.replace(graph.output(mul), patch.add(*op, {graph.input(gate, 0)}, {}));
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace serin::graph
