// function_import.cc: a node that calls a function of the file is replaced by the function's nodes.
//
// A call is a scope of its own in the graph of its caller: the function's names mean nothing outside, and each call makes them anew (nodes are
// named "<call>/<node>"). Attributes that refer to the function's are those of the calling node, or their defaults, or absent, which is what an
// operator's own default is for. A function sees its inputs and nothing else, so that no name is captured. It is written in operator sets of
// its own. Calls form no cycle: a function within itself is refused, and the model's limit of nodes bounds what doubling in each call would make.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/onnx/graph_import.h"
#include "runtime/formats/onnx/names.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

std::string full_name(const FunctionProto& function) {
  return printable(function.domain.empty() ? std::string(function.name) : fmt::format("{}.{}", function.domain, function.name));
}

/// "a.F -> a.G -> a.F" where `function` is being expanded already, from the outermost on.
std::optional<std::string> cycle(const FunctionCall* call, const FunctionProto& function) {
  std::string chain = full_name(function);
  for (; call; call = call->outer) {
    chain.insert(0, full_name(call->function) + " -> ");
    if (&call->function == &function) return chain;
  }
  return std::nullopt;
}

const AttributeProto* find_attribute(const std::vector<AttributeProto>& attributes, std::string_view name) {
  const auto found = std::ranges::find(attributes, name, &AttributeProto::name);
  return found == attributes.end() ? nullptr : &*found;
}

bool takes_attribute(const FunctionProto& function, std::string_view name) {
  return std::ranges::find(function.attributes, name) != function.attributes.end() || find_attribute(function.defaults, name);
}

Status check_call(const FunctionProto& function, const NodeProto& node) {
  if (node.inputs.size() > function.inputs.size())
    return Error{Code::kCorrupt, fmt::format("has {} inputs, the function takes {}", node.inputs.size(), function.inputs.size())};
  if (node.outputs.size() > function.outputs.size())
    return Error{Code::kCorrupt, fmt::format("has {} outputs, the function returns {}", node.outputs.size(), function.outputs.size())};
  for (const AttributeProto& attribute : node.attributes)
    if (!takes_attribute(function, attribute.name))
      return Error{Code::kCorrupt, fmt::format("attribute {} is not one of the function", quote(attribute.name))};
  return {};
}

/// A function that does not say which version of the standard it uses is written in that of the model.
Opsets opsets_of(const FunctionProto& function, const Opsets& model) {
  Opsets opsets = model;
  for (const auto& [domain, version] : function.opset_import) {
    if (domain.empty() || domain == "ai.onnx")
      opsets.standard = version;
    else
      opsets.others.insert_or_assign(domain, version);
  }
  return opsets;
}

}  // namespace

Status GraphImport::expand(const FunctionProto& function, const NodeProto& node, const std::string& name) {
  const auto context = [&] { return fmt::format("node {} ({})", quote(name), full_name(function)); };
  if (const auto chain = cycle(call_, function)) return Error{Code::kCorrupt, "a function calls itself: " + *chain}.in(context());
  if (auto status = check_call(function, node); !status) return status.error().in(context());
  const FunctionCall call{function, node, call_, name + "/", opsets_of(function, model_.opsets)};
  if (call.opsets.standard > kNewestOpset) {
    refuse_node(node, name, fmt::format(": a function written in opset {}", call.opsets.standard));
    return {};
  }
  if (auto status = GraphImport(*this, call).run_call(*this); !status) return status.error().in(context());
  if (error_) return error_->in(context());
  return {};
}

Status GraphImport::run_call(GraphImport& caller) {
  SERIN_TRY(const Nested nested, Nested::enter(model_));
  const auto& [function, node] = std::pair<const FunctionProto&, const NodeProto&>(call_->function, call_->node);
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const bool given = i < node.inputs.size() && !node.inputs[i].empty();
    if (!values_.emplace(function.inputs[i], given ? caller.find(node.inputs[i]) : graph::kNone).second)
      return Error{Code::kCorrupt, fmt::format("input {} of the function is declared twice", quote(function.inputs[i]))};
  }
  SERIN_CHECK(add_nodes(function.nodes));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const graph::ValueId value = find(function.outputs[i]);
    if (value == graph::kNone)
      return Error{Code::kCorrupt, fmt::format("output {} of the function is not made by any node", quote(function.outputs[i]))};
    caller.define(node.outputs[i], own_value(value, function.outputs[i], i));
  }
  return {};
}

/// A value that the caller may name: not one of its own that the function hands back, and not the same for two outputs.
graph::ValueId GraphImport::own_value(graph::ValueId value, std::string_view output, size_t i) {
  const auto& function = call_->function;
  const bool passed = std::ranges::find(function.inputs, output) != function.inputs.end();
  const auto end = function.outputs.begin() + static_cast<std::ptrdiff_t>(i);
  if (!passed && std::find(function.outputs.begin(), end, output) == end) return value;
  if (const auto constant = graph_.constant(value)) return graph_.add_constant(std::string(output), constant);
  return graph_.output(graph_.add_node(graph::Op::kIdentity, prefix_ + std::string(output), {value}));
}

Result<NodeProto> GraphImport::with_attributes_of_call(const NodeProto& proto) const {
  NodeProto resolved = proto;
  resolved.attributes.clear();
  for (const AttributeProto& attribute : proto.attributes) {
    if (!attribute.reference) {
      resolved.attributes.push_back(attribute);
      continue;
    }
    const auto problem = [&](std::string_view what) {
      return Error{Code::kCorrupt,
                   fmt::format("node {} ({}): attribute {} refers to attribute {} of the function, which {}", quote(proto.name),
                               printable(proto.op_type), quote(attribute.name), quote(*attribute.reference), what)};
    };
    if (!takes_attribute(call_->function, *attribute.reference)) return problem("there is not");
    const AttributeProto* given = find_attribute(call_->node.attributes, *attribute.reference);
    if (!given) given = find_attribute(call_->function.defaults, *attribute.reference);
    if (!given) continue;
    if (attribute.type != AttributeProto::Type::kUndefined && given->type != attribute.type) return problem("is of another type");
    resolved.attributes.push_back(*given);
    resolved.attributes.back().name = attribute.name;
  }
  return resolved;
}

}  // namespace serin::formats::onnx
