#include "runtime/engine/program/block.h"

#include <algorithm>

namespace serin::engine {

namespace {

using enum graph::Op;

constexpr graph::Op kOnValues[] = {kConcatFromSequence, kIf,
                                   kImageDecoder,       kLoop,
                                   kOptional,           kOptionalGetElement,
                                   kOptionalHasElement, kScan,
                                   kSequenceAt,         kSequenceConstruct,
                                   kSequenceEmpty,      kSequenceErase,
                                   kSequenceInsert,     kSequenceLength,
                                   kSequenceMap,        kSplitToSequence};

}  // namespace

bool works_on_values(graph::Op op) { return std::ranges::find(kOnValues, op) != std::end(kOnValues); }

bool works_on_values(const graph::Graph& graph, const graph::Node& node) {
  if (works_on_values(node.op)) return true;
  return node.op == kIdentity && graph.value(node.inputs[0]).type.kind != graph::ValueKind::kTensor;
}

bool has_no_kernel(graph::Op op) { return op == kShape || op == kSize || op == kConstantOfShape || op == kRange; }

Result<std::shared_ptr<const Block>> Block::make(graph::Graph graph) {
  auto block = std::make_shared<Block>();
  block->graph = std::move(graph);
  SERIN_TRY(block->order, block->graph.topological_order());
  for (const graph::NodeId id : block->order) {
    for (const auto& body : block->graph.node(id).bodies) {
      SERIN_TRY(auto inner, Block::make(*body));
      block->bodies[id].push_back(std::move(inner));
    }
  }
  return std::shared_ptr<const Block>(std::move(block));
}

}  // namespace serin::engine
