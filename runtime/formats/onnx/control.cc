// control.cc: reads If, Loop, Scan and SequenceMap. In ONNX a body may read all values around it; here bodies are closed. So captured
// values become operands of the node and inputs of each body, in the order of first use. Constants are shared with the body instead and
// cost no operand.

#include <fmt/format.h>

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using Captures = std::vector<Capture>;

std::shared_ptr<const graph::Graph> import_body(NodeImport& node, std::string_view key, const GraphProto& proto, const Captures& captures) {
  auto body = node.scope().body(proto, captures);
  if (body) return std::make_shared<const graph::Graph>(std::move(*body));
  const Error error = body.error().in(key);
  node.fail(error.code, error.message);
  return nullptr;
}

void append(std::vector<graph::ValueId>& operands, const Captures& captures) {
  for (const auto& capture : captures) operands.push_back(capture.outside);
}

/// A node with one body: `operands`, then what the body captures.
void emit_with_body(NodeImport& node, graph::Op op, const GraphProto& proto, std::vector<graph::ValueId> operands,
                    graph::Attributes attributes) {
  const Captures captures = node.scope().captures({&proto});
  auto body = import_body(node, "body", proto, captures);
  if (!body) return;
  append(operands, captures);
  const graph::NodeId id = node.emit(op, std::move(operands), std::move(attributes));
  node.graph().node(id).bodies = {std::move(body)};
}

}  // namespace

void import_if(NodeImport& node, graph::Op op) {
  const GraphProto* const then_proto = node.body("then_branch");
  const GraphProto* const else_proto = node.body("else_branch");
  if (!then_proto || !else_proto) return;
  for (const GraphProto* proto : {then_proto, else_proto}) {
    if (!proto->inputs.empty()) return node.corrupt("a branch has inputs of its own");
    if (proto->outputs.size() != node.output_count())
      return node.corrupt(fmt::format("a branch returns {} values, the node has {} outputs", proto->outputs.size(), node.output_count()));
  }
  const Captures captures = node.scope().captures({then_proto, else_proto});
  auto then_body = import_body(node, "then_branch", *then_proto, captures);
  auto else_body = import_body(node, "else_branch", *else_proto, captures);
  if (!then_body || !else_body) return;

  std::vector<graph::ValueId> operands = {node.input(0)};
  append(operands, captures);
  const graph::NodeId id = node.emit(op, std::move(operands));
  node.graph().node(id).bodies = {std::move(then_body), std::move(else_body)};
}

void import_loop(NodeImport& node, graph::Op op) {
  const GraphProto* const proto = node.body("body");
  if (!proto) return;
  std::vector<graph::ValueId> operands = node.inputs();
  if (operands.size() < 2) operands.resize(2, graph::kNone);
  const size_t carried = operands.size() - 2;
  if (proto->inputs.size() != carried + 2)
    return node.corrupt(fmt::format("the body has {} inputs, {} are needed: iteration, condition and the carried values",
                                    proto->inputs.size(), carried + 2));
  if (proto->outputs.size() != node.output_count() + 1 || proto->outputs.size() < carried + 1)
    return node.corrupt(fmt::format("the body returns {} values, the node has {} outputs", proto->outputs.size(), node.output_count()));

  emit_with_body(node, op, *proto, std::move(operands), {{"carried", static_cast<int64_t>(carried)}});
}

/// In opset 8 a batch is around everything, and the first operand says how long each row is.
void import_scan(NodeImport& node, graph::Op op) {
  const GraphProto* const proto = node.body("body");
  if (!proto) return;
  const bool batched = node.opset() < 9;
  std::vector<graph::ValueId> operands = node.inputs();
  const size_t own = batched ? 1 : 0;
  const int64_t scanned = node.required_integer("num_scan_inputs");
  if (operands.size() < own || scanned < 1 || static_cast<uint64_t>(scanned) > operands.size() - own)
    return node.corrupt(fmt::format("scans {} inputs of {}", scanned, operands.size()));
  const size_t carried = operands.size() - own - static_cast<size_t>(scanned);
  if (proto->inputs.size() != operands.size() - own)
    return node.corrupt(fmt::format("the body has {} inputs, {} are needed", proto->inputs.size(), operands.size() - own));
  if (proto->outputs.size() != node.output_count() || proto->outputs.size() < carried)
    return node.corrupt(fmt::format("the body returns {} values, the node has {} outputs", proto->outputs.size(), node.output_count()));

  graph::Attributes attributes{{"carried", static_cast<int64_t>(carried)}, {"scanned", scanned}};
  if (batched) {
    attributes.emplace("batched", int64_t{1});
    if (auto directions = node.integers("directions")) attributes.emplace("input_directions", std::move(*directions));
  } else {
    for (const char* key : {"scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"})
      if (auto values = node.integers(key)) attributes.emplace(std::string(key).substr(5), std::move(*values));
  }
  emit_with_body(node, op, *proto, std::move(operands), std::move(attributes));
}

void import_sequence_map(NodeImport& node, graph::Op op) {
  const GraphProto* const proto = node.body("body");
  if (!proto) return;
  std::vector<graph::ValueId> operands = node.inputs();
  const size_t mapped = operands.size();
  if (proto->inputs.size() != mapped)
    return node.corrupt(fmt::format("the body has {} inputs, {} are needed", proto->inputs.size(), mapped));
  if (proto->outputs.size() != node.output_count())
    return node.corrupt(fmt::format("the body returns {} values, the node has {} outputs", proto->outputs.size(), node.output_count()));
  emit_with_body(node, op, *proto, std::move(operands), {{"mapped", static_cast<int64_t>(mapped)}});
}

}  // namespace serin::formats::onnx
