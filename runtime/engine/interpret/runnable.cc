// runnable.cc: checks the names of operators first, because these need no sizes. Then it plans the first stage of a run, with tensors that
// have shapes and no elements.

#include "runtime/engine/interpret/runnable.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/engine/interpret/stage.h"
#include "runtime/engine/interpret/strings.h"
#include "runtime/engine/lower/lowering_table.h"
#include "runtime/engine/program/block.h"

namespace serin::engine {

namespace {

bool reads_strings(const graph::Graph& graph, const graph::Node& node) {
  return std::ranges::any_of(node.inputs,
                             [&](graph::ValueId id) { return id != graph::kNone && graph.value(id).type.dtype == DType::kString; });
}

/// Why no one computes the node; nothing where somebody may.
std::optional<std::string> why_not(const graph::Graph& graph, const graph::Node& node, const kernels::Backend& backend) {
  if (works_on_values(graph, node)) return std::nullopt;
  const bool strings = reads_strings(graph, node);
  if (strings && moves_strings(node.op)) return std::nullopt;
  if (backend.knows(graph::op_name(node.op))) return std::nullopt;
  if (strings) return "no kernel computes it on strings";
  if (has_no_kernel(node.op)) return std::nullopt;
  const LowerFn lower = lower_fn(node.op);
  return lower && lower != lower_generic ? std::nullopt : std::optional<std::string>("no kernel computes it");
}

void collect(const Block& block, const kernels::Backend& backend, std::vector<std::string>& refused) {
  for (const graph::NodeId id : block.order) {
    const graph::Node& node = block.graph.node(id);
    if (const auto why = why_not(block.graph, node, backend))
      refused.push_back(fmt::format("'{}' ({}): {}", node.name, graph::op_name(node.op), *why));
    const auto bodies = block.bodies.find(id);
    if (bodies == block.bodies.end()) continue;
    for (const auto& body : bodies->second) collect(*body, backend, refused);
  }
}

/// Inputs with every unknown size at `size`; nothing where a rank is not known, or one is no tensor of numbers.
std::optional<std::vector<Value>> inputs_of_size(const Block& block, int64_t size) {
  std::vector<Value> values(block.graph.value_capacity());
  for (const graph::ValueId id : block.graph.inputs()) {
    const graph::Type& type = block.graph.value(id).type;
    if (type.kind != graph::ValueKind::kTensor || !type.shape || type.dtype == DType::kString || type.dtype == DType::kUndefined)
      return std::nullopt;
    auto tensor = std::make_shared<graph::Constant>();
    tensor->dtype = type.dtype;
    for (const graph::Dim& dim : *type.shape) {
      graph::Bindings bindings;
      for (const std::string& symbol : dim.symbols()) bindings[symbol] = size;
      tensor->shape.push_back(dim.bind(bindings).value().value_or(size));
    }
    if (!tensor->shape.checked_elements()) return std::nullopt;
    values[static_cast<size_t>(id)] = Value::of(std::move(tensor));
  }
  return values;
}

}  // namespace

/// Sizes that contradict each other say nothing: larger ones may not.
Result<std::unique_ptr<Stage>> first_stage(StageContext& context, Stage& start) {
  for (const int64_t size : {1, 2, 8, 32, 224}) {
    const auto inputs = inputs_of_size(context.block, size);
    if (!inputs) break;
    auto stage = make_stage(context, start, *inputs, Contents::kUnknown);
    if (stage || stage.error().code != Code::kInvalidArgument) return stage;
  }
  return Error{Code::kInvalidArgument, "no stage is known before a run"};
}

Status check_runnable(const Block& block, const Plan::Context& context) {
  constexpr size_t kNamed = 20;
  std::vector<std::string> refused;
  collect(block, context.backend, refused);
  if (!refused.empty()) {
    std::string message = fmt::format("{} {} cannot be run: ", refused.size(), refused.size() == 1 ? "node" : "nodes");
    for (size_t i = 0; i < std::min(refused.size(), kNamed); ++i) message.append(i ? "; " : "").append(refused[i]);
    if (refused.size() > kNamed) message += fmt::format("; and {} more", refused.size() - kNamed);
    return Error{Code::kUnsupported, std::move(message)};
  }
  StageContext stages(block, context);
  Stage start;
  const auto stage = first_stage(stages, start);
  if (!stage && stage.error().code != Code::kInvalidArgument) return stage.error();
  return {};
}

}  // namespace serin::engine
