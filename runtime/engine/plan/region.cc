// region.cc: plans a region of a graph. The nodes are copied into a graph of their own, which is bound, lowered and planned like every
// other.

#include "runtime/engine/plan/region.h"

#include <algorithm>
#include <string>
#include <utility>

namespace serin::engine {

namespace {

using graph::kNone;
using graph::NodeId;
using graph::ValueId;

class Extraction {
 public:
  Extraction(const graph::Graph& graph, std::span<const NodeId> nodes, const std::map<ValueId, graph::ConstantPtr>& known)
      : graph_(graph), known_(known), members_(nodes.begin(), nodes.end()), moved_(graph.value_capacity(), kNone) {
    std::ranges::sort(members_);
    for (const NodeId id : nodes) copy(id);
    part_.set_outputs(std::move(results_));
  }

  const graph::Graph& part() const { return part_; }
  std::vector<ValueId> inputs, outputs;

 private:
  graph::ConstantPtr constant(ValueId id) const {
    const auto known = known_.find(id);
    return known != known_.end() ? known->second : graph_.constant(id);
  }

  ValueId operand(ValueId id) {
    if (id == kNone) return kNone;
    ValueId& there = moved_[static_cast<size_t>(id)];
    if (there != kNone) return there;
    if (const graph::ConstantPtr value = constant(id)) {
      there = part_.add_constant(graph_.value(id).name, value);
    } else {
      there = part_.add_input(graph_.value(id).name, graph_.value(id).type);
      inputs.push_back(id);
    }
    return there;
  }

  void copy(NodeId id) {
    const graph::Node& node = graph_.node(id);
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) operands.push_back(operand(input));
    const NodeId copied = part_.add_node(node.op, node.name, std::move(operands), node.attributes, node.outputs.size());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId made = node.outputs[i];
      if (made == kNone) {
        part_.connect(copied, i, kNone);
        continue;
      }
      const ValueId inside = part_.output(copied, i);
      part_.value(inside).name = graph_.value(made).name;
      const graph::ConstantPtr value = constant(made);  // computed while the stage was made: sizes that others follow from
      moved_[static_cast<size_t>(made)] = value ? part_.add_constant(graph_.value(made).name, value) : inside;
      if (!leaves(made)) continue;
      outputs.push_back(made);
      results_.push_back(moved_[static_cast<size_t>(made)]);
    }
  }

  /// Whether somebody else wants it.
  bool leaves(ValueId id) const {
    if (graph_.is_output(id)) return true;
    const auto readers = graph_.readers(id);
    return std::ranges::any_of(readers, [&](NodeId reader) { return !std::ranges::binary_search(members_, reader); });
  }

  const graph::Graph& graph_;
  const std::map<ValueId, graph::ConstantPtr>& known_;
  std::vector<NodeId> members_;   // sorted
  std::vector<ValueId> moved_;    // by value of the graph: where it is in the part
  std::vector<ValueId> results_;  // `outputs`, in the part
  graph::Graph part_;
};

Status check_size(const Plan& plan, size_t limit) {
  size_t bytes = 0;
  for (const TensorInfo& info : plan.outputs) bytes += static_cast<size_t>(info.shape.elements()) * dtype_size(info.dtype);
  if (bytes <= limit) return {};
  return Error{Code::kTooLarge,
               "these sizes make tensors of " + std::to_string(bytes) + " bytes, more than the limit of " + std::to_string(limit)};
}

}  // namespace

Result<std::unique_ptr<Region>> make_region(const graph::Graph& graph, std::span<const NodeId> nodes,
                                            const std::map<ValueId, graph::ConstantPtr>& known, const Plan::Context& context) {
  Extraction extraction(graph, nodes, known);
  if (extraction.outputs.empty()) return std::unique_ptr<Region>();
  auto region = std::make_unique<Region>();
  SERIN_TRY(region->plan, Plan::make(extraction.part(), {}, context));
  SERIN_CHECK(check_size(*region->plan, context.max_arena_bytes));
  region->inputs = std::move(extraction.inputs);
  region->outputs = std::move(extraction.outputs);
  return region;
}

}  // namespace serin::engine
