// constant_operands.cc
//
// Newer versions of operators take as operands the axes, pads and bounds (of a Slice or Clip) that older versions had as attributes. Each
// becomes an attribute where it is known, so that passes and the engine look in one place.

#include <array>

#include "runtime/graph/ops/reductions.h"
#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"

namespace serin::graph {
namespace {

struct Slot {
  size_t operand;
  std::string_view attribute;
  bool number;  ///< one floating point number; else a list of integers
};

std::vector<Slot> slots(Op op) {
  if (is_reduction(op)) return {{1, "axes", false}};
  switch (op) {
    case Op::kSqueeze:
    case Op::kUnsqueeze: return {{1, "axes", false}};
    case Op::kSplit: return {{1, "split", false}};
    case Op::kSlice: return {{1, "starts", false}, {2, "ends", false}, {3, "axes", false}, {4, "steps", false}};
    case Op::kPad: return {{1, "pads", false}, {2, "value", true}, {3, "axes", false}};
    case Op::kClip: return {{1, "min", true}, {2, "max", true}};
    default: return {};
  }
}

std::optional<Attribute> attribute_of(const Constant& constant, bool number) {
  if (!number) {
    auto integers = integers_of(constant);
    return integers ? std::optional<Attribute>(std::move(*integers)) : std::nullopt;
  }
  if (constant.dtype != DType::kFloat32 && constant.dtype != DType::kFloat64) return std::nullopt;  // an i64 may not fit a double
  const auto value = number_of(constant);
  return value ? std::optional<Attribute>(*value) : std::nullopt;
}

}  // namespace

Result<bool> ConstantOperands::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId id : graph.nodes()) {
    for (const Slot& slot : slots(graph.node(id).op)) {
      const ConstantPtr constant = graph.constant(graph.input(id, slot.operand));
      if (!constant) continue;
      auto attribute = attribute_of(*constant, slot.number);
      if (!attribute) continue;
      graph.node(id).attributes.emplace(slot.attribute, std::move(*attribute));  // an attribute that is there wins, as everywhere
      graph.set_input(id, slot.operand, kNone);
      changed = true;
    }
    size_t count = graph.node(id).inputs.size();
    const auto least = static_cast<size_t>(schema(graph.node(id).op).min_inputs);
    while (count > least && graph.node(id).inputs[count - 1] == kNone) --count;
    graph.resize_inputs(id, count);
  }
  return changed;
}

}  // namespace serin::graph
