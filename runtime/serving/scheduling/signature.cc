#include "runtime/serving/scheduling/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/engine/value.h"

namespace serin::serving {
namespace {

/// Null: requests bring it. The view keeps alive what it shows.
std::shared_ptr<const TensorView> standard_of(const graph::Graph& graph, const std::string& input) {
  const auto stored = graph.standard_inputs.find(input);
  if (stored == graph.standard_inputs.end()) return nullptr;
  const auto held = std::make_shared<const std::pair<graph::ConstantPtr, TensorView>>(stored->second, engine::view_of(*stored->second));
  return {held, &held->second};
}

/// Whether the model parses what comes in that input as serialized tf.Example messages.
bool parses_examples(const graph::Graph& graph, const std::string& input) {
  return std::ranges::any_of(graph.nodes(graph::Op::kParseExample),
                             [&](graph::NodeId node) { return graph.value(graph.input(node, 0)).name == input; });
}

}  // namespace

std::vector<protocol::TensorSpec> specs_of(std::span<const engine::TensorInfo> infos) {
  std::vector<protocol::TensorSpec> specs;
  for (const engine::TensorInfo& info : infos) specs.push_back({info.name, info.dtype, info.shape, info.ranked});
  return specs;
}

protocol::Signature signature_of(std::string model, std::span<const engine::TensorInfo> inputs, std::span<const engine::TensorInfo> outputs,
                                 const graph::Graph& graph) {
  protocol::Signature signature{std::move(model), specs_of(inputs), specs_of(outputs), graph.signature.name, graph.signature.method};
  for (protocol::TensorSpec& input : signature.inputs) {
    input.standard = standard_of(graph, input.name);
    input.examples = parses_examples(graph, input.name);
  }
  return signature;
}

Result<int64_t> rows_of_request(const protocol::Signature& signature, std::span<const TensorView> inputs) {
  const int64_t rows = inputs.empty() ? 1 : inputs.front().shape[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].shape[0] != rows)
      return invalid(fmt::format("{}: inputs '{}' and '{}' disagree on the batch: {} and {} rows", signature.model,
                                 signature.inputs[0].name, signature.inputs[i].name, rows, inputs[i].shape[0]));
  }
  if (rows < 1) return invalid(fmt::format("{}: the request has a batch of 0 rows", signature.model));
  return rows;
}

}  // namespace serin::serving
