// verify.cc: checks the rules that every importer and every pass must keep, after each of them. A fault of the file is kCorrupt and names
// the node; a fault that only a bug of Serin can cause is kInternal.

#include <algorithm>

#include <fmt/format.h>

#include "runtime/graph/graph.h"

namespace serin::graph {
namespace {

constexpr int kMaxNesting = 64;

std::string label(const Node& node) { return fmt::format("node '{}' ({})", node.name, op_name(node.op)); }

Error corrupt(const Node& node, std::string what) { return {Code::kCorrupt, label(node) + ": " + std::move(what)}; }

Status verify_counts(const Node& node) {
  const OpSchema& expected = schema(node.op);
  const auto operands = static_cast<int>(node.inputs.size());
  if (operands < expected.min_inputs || (expected.max_inputs >= 0 && operands > expected.max_inputs)) {
    const std::string range = expected.max_inputs < 0 ? fmt::format("at least {}", expected.min_inputs)
                              : expected.min_inputs == expected.max_inputs
                                  ? fmt::format("{}", expected.min_inputs)
                                  : fmt::format("{} to {}", expected.min_inputs, expected.max_inputs);
    return corrupt(node, fmt::format("has {} operands, needs {}", operands, range));
  }
  if (node.outputs.empty() || (expected.outputs >= 0 && static_cast<int>(node.outputs.size()) != expected.outputs)) {
    return corrupt(node, fmt::format("has {} results, needs {}", node.outputs.size(),
                                     expected.outputs < 0 ? "at least 1" : fmt::format("{}", expected.outputs)));
  }
  for (int i = 0; i < expected.min_inputs; ++i) {
    const bool optional = node.op == Op::kLoop || node.op == Op::kScan;  // trip count and condition, or lengths, may be absent
    if (!optional && node.inputs[static_cast<size_t>(i)] == kNone) return corrupt(node, fmt::format("operand {} is missing", i));
  }
  return {};
}

/// Operands that are not handed on to the bodies.
size_t own_operands(const Node& node) {
  if (node.op == Op::kIf) return 1;
  return node.op == Op::kScan && node.integer("batched", 0) != 0 ? 1 : 0;
}

Status verify_bodies(const Node& node) {
  const bool one = node.op == Op::kLoop || node.op == Op::kScan || node.op == Op::kSequenceMap;
  const size_t expected = node.op == Op::kIf ? 2 : one ? 1 : 0;
  if (node.bodies.size() != expected) return corrupt(node, fmt::format("has {} bodies, needs {}", node.bodies.size(), expected));
  for (const auto& body : node.bodies) {
    if (!body) return corrupt(node, "a body is missing");
    const size_t operands = node.inputs.size() - own_operands(node);
    if (body->inputs().size() != operands) {
      return corrupt(node, fmt::format("a body has {} inputs, is given {}", body->inputs().size(), operands));
    }
    const size_t results = node.outputs.size() + (node.op == Op::kLoop ? 1 : 0);  // a loop's body says whether to go on
    if (body->outputs().size() != results) {
      return corrupt(node, fmt::format("a body returns {} values, needs {}", body->outputs().size(), results));
    }
  }
  return {};
}

/// Every id is one of the graph's, and who makes a value agrees with what the value says.
Status verify_edges(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const auto known = [&](ValueId value) { return value == kNone || (value >= 0 && static_cast<size_t>(value) < graph.value_capacity()); };
  if (!std::ranges::all_of(node.inputs, known) || !std::ranges::all_of(node.outputs, known)) {
    return Error{Code::kInternal, label(node) + ": refers to a value that does not exist"};
  }
  for (const ValueId made : node.outputs) {
    if (made == kNone) continue;
    if (graph.value(made).constant) return corrupt(node, fmt::format("makes '{}', which is a constant", graph.value(made).name));
    if (graph.value(made).producer != id)
      return corrupt(node, fmt::format("makes '{}', which another node makes, too", graph.value(made).name));
  }
  return {};
}

/// The graph's own count of readers is the true one.
Status verify_readers(const Graph& graph) {
  std::vector<size_t> reads(graph.value_capacity(), 0);
  for (const NodeId id : graph.nodes()) {
    for (const ValueId read : graph.node(id).inputs) {
      if (read != kNone) ++reads[static_cast<size_t>(read)];
    }
  }
  for (const ValueId id : graph.outputs()) ++reads[static_cast<size_t>(id)];
  for (size_t id = 0; id < reads.size(); ++id) {
    if (reads[id] == graph.reader_count(static_cast<ValueId>(id))) continue;
    return Error{Code::kInternal,
                 fmt::format("value '{}' has other readers than the graph knows; was an operand changed without set_input?",
                             graph.value(static_cast<ValueId>(id)).name)};
  }
  return {};
}

Status verify_nested(const Graph& graph, int depth) {
  if (depth > kMaxNesting) return Error{Code::kTooLarge, fmt::format("bodies are nested more than {} deep", kMaxNesting)};

  std::vector<bool> is_input(graph.value_capacity(), false);
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    if (input.producer != kNone || input.constant)
      return Error{Code::kCorrupt, fmt::format("input '{}' is also made inside the graph", input.name)};
    is_input[static_cast<size_t>(id)] = true;
  }
  const auto defined = [&](ValueId id) {
    const Value& value = graph.value(id);
    return is_input[static_cast<size_t>(id)] || value.constant || value.producer != kNone;
  };
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    SERIN_CHECK(verify_node(graph, id));
    for (const ValueId read : node.inputs) {
      if (read != kNone && !defined(read)) return corrupt(node, fmt::format("reads '{}', which nothing makes", graph.value(read).name));
    }
    for (const auto& body : node.bodies) {
      if (auto status = verify_nested(*body, depth + 1); !status) return status.error().in(label(node));
    }
  }
  if (graph.outputs().empty()) return Error{Code::kCorrupt, "the graph has no outputs"};
  if (!graph.output_names().empty() && graph.output_names().size() != graph.outputs().size()) {
    return Error{Code::kInternal, "there are not as many output names as outputs"};
  }
  for (const ValueId id : graph.outputs()) {
    if (id < 0 || static_cast<size_t>(id) >= graph.value_capacity())
      return Error{Code::kInternal, "an output refers to a value that does not exist"};
    if (!defined(id)) return Error{Code::kCorrupt, fmt::format("output '{}' is made by nothing", graph.value(id).name)};
  }
  SERIN_CHECK(verify_readers(graph));
  auto order = graph.topological_order();
  if (!order) return order.error();
  return {};
}

}  // namespace

Status verify_node(const Graph& graph, NodeId id) {
  SERIN_CHECK(verify_counts(graph.node(id)));
  SERIN_CHECK(verify_edges(graph, id));
  return verify_bodies(graph.node(id));
}

Status verify(const Graph& graph) { return verify_nested(graph, 0); }

}  // namespace serin::graph
