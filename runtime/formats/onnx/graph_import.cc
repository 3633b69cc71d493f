// graph_import.cc: imports a graph. Initializers become constants, inputs become inputs, and nodes are lowered one after the other by the
// table in operators.cc.
//
// Nodes are walked once, in the order that node_order.cc finds. A name that is not known yet is a mistake: either nothing defines it, or a later
// node does (a cycle). A node that cannot be lowered does not end the walk; all are reported together.

#include "runtime/formats/onnx/graph_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "runtime/formats/onnx/names.h"
#include "runtime/formats/onnx/node_import.h"
#include "runtime/formats/onnx/node_order.h"
#include "runtime/formats/onnx/old_opsets.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

bool is_default_domain(std::string_view domain) { return without_alias(domain).empty(); }

/// Letters, digits and underscores, so that the symbol can be typed on a command line (--dim seq=128) and printed in an expression.
std::string symbol_from(std::string_view param) {
  std::string name;
  for (const char c : param) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    name += word ? c : '_';
  }
  if (name.find_first_not_of('_') == std::string::npos) return "";  // "?" and the like name nothing
  if (name[0] >= '0' && name[0] <= '9') name.insert(0, "_");
  return name.substr(0, kLongestName);
}

}  // namespace

Result<Nested> Nested::enter(ModelImport& model) {
  if (model.nesting < model.nesting_limit) return Nested(model);
  return Error{Code::kTooLarge, fmt::format("graphs and functions within each other, more than {} deep", model.nesting_limit)};
}

Result<graph::Graph> GraphImport::run(const GraphProto& proto, const std::vector<Capture>& captures) {
  SERIN_TRY(const Nested nested, Nested::enter(model_));
  graph_.name = proto.name;
  SERIN_CHECK(add_initializers(proto));
  if (is_model()) SERIN_CHECK(check_replaceable(proto));
  SERIN_CHECK(add_inputs(proto));
  for (const Capture& capture : captures) {
    if (values_.contains(capture.name)) continue;
    define(capture.name, graph_.add_input(std::string(capture.name), outer_->graph_.value(capture.outside).type));
  }
  SERIN_CHECK(add_nodes(proto.nodes));
  SERIN_CHECK(set_outputs(proto));
  return std::move(own_graph_);
}

Result<graph::Graph> GraphImport::body(const GraphProto& proto, const std::vector<Capture>& captures) {
  return GraphImport(model_, this).run(proto, captures);
}

Result<std::vector<graph::ValueId>> GraphImport::inlined(const GraphProto& body, const std::vector<graph::ValueId>& inputs,
                                                         const std::string& name) {
  SERIN_TRY(const Nested nested, Nested::enter(model_));
  if (body.inputs.size() != inputs.size())
    return Error{Code::kCorrupt, fmt::format("has {} inputs, {} are needed", body.inputs.size(), inputs.size())};
  GraphImport scope(*this, name + "/");
  for (size_t i = 0; i < inputs.size(); ++i) scope.values_.emplace(body.inputs[i].name, inputs[i]);
  SERIN_CHECK(scope.add_initializers(body));
  SERIN_CHECK(scope.add_nodes(body.nodes));
  std::vector<graph::ValueId> results;
  for (const ValueInfoProto& output : body.outputs) {
    results.push_back(scope.find(output.name));
    if (results.back() == graph::kNone) return Error{Code::kCorrupt, fmt::format("output {} is not made by any node", quote(output.name))};
  }
  return results;
}

Status GraphImport::add_nodes(const std::vector<NodeProto>& nodes) {
  for (const NodeProto& node : nodes)
    for (const std::string_view output : node.outputs)
      if (!output.empty()) made_by_.emplace(output, node.op_type);
  for (const NodeProto* node : in_order(nodes)) SERIN_CHECK(add_node(*node));
  return {};
}

std::vector<Capture> GraphImport::captures(const std::vector<const GraphProto*>& bodies) {
  std::vector<Capture> captures;
  for (const std::string_view name : free_names(bodies)) {
    const graph::ValueId outside = find(name);
    if (outside != graph::kNone && !graph_.constant(outside)) captures.push_back({name, outside});
  }
  return captures;
}

graph::ValueId GraphImport::find(std::string_view name) {
  if (const auto found = values_.find(name); found != values_.end()) return found->second;
  if (!outer_) return graph::kNone;
  const graph::ValueId outside = outer_->find(name);
  if (&outer_->graph_ == &graph_) return outside;
  const graph::ConstantPtr constant = outer_->graph_.constant(outside);
  if (!constant) return graph::kNone;
  const graph::ValueId inside = graph_.add_constant(std::string(name), constant);
  values_.emplace(name, inside);
  return inside;
}

void GraphImport::define(std::string_view name, graph::ValueId value) {
  if (name.empty()) return;
  if (!values_.emplace(name, value).second && !error_)
    error_ = Error{Code::kCorrupt, fmt::format("value {} is defined twice", quote(name))};
  graph_.value(value).name = prefix_ + std::string(name);
}

Status GraphImport::add_initializers(const GraphProto& proto) {
  for (const TensorProto& tensor : proto.initializers)
    SERIN_CHECK(add_initializer(tensor.name, call_ ? model_.tensors.read_shared(tensor) : model_.tensors.read(tensor)));
  for (const SparseTensorProto& tensor : proto.sparse_initializers)
    SERIN_CHECK(add_initializer(tensor.values.name, model_.tensors.read(tensor)));
  return {};
}

Status GraphImport::add_initializer(std::string_view name, Result<graph::ConstantPtr> constant) {
  if (name.empty()) return Error{Code::kCorrupt, "an initializer has no name"};
  if (!constant) return constant.error().in(fmt::format("initializer {}", quote(name)));
  if (is_model() && model_.replaceable.contains(name)) {
    if (graph_.standard_inputs.emplace(name, graph::in_memory(*constant)).second) return {};  // add_inputs makes it one
    return Error{Code::kCorrupt, fmt::format("value {} is defined twice", quote(name))};
  }
  define(name, graph_.add_constant(std::string(name), *constant));
  if (error_) return *error_;
  return {};
}

/// Asked for by people, so in words for them.
Status GraphImport::check_replaceable(const GraphProto& proto) const {
  for (const std::string& name : model_.replaceable) {
    if (std::ranges::find(proto.inputs, name, &ValueInfoProto::name) != proto.inputs.end()) continue;
    const bool stored = graph_.standard_inputs.contains(name);
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}' is no input of the model{}", name,
                             stored ? ": it is a value that the file stores and does not let requests replace (an initializer that is not "
                                      "declared as an input)"
                                    : "")};
  }
  return {};
}

Status GraphImport::check_standard(std::string_view name, const graph::Type& declared) const {
  const auto stored = graph_.standard_inputs.find(name);
  if (stored == graph_.standard_inputs.end()) return {};
  const graph::Constant& constant = *stored->second;
  const auto fits = [](const graph::Dim& dim, int64_t size) { return dim.value().value_or(size) == size; };
  if (declared.kind == graph::ValueKind::kTensor && declared.dtype == constant.dtype &&
      (!declared.shape || std::ranges::equal(*declared.shape, constant.shape, fits)))
    return {};
  return Error{Code::kCorrupt, fmt::format("input {} is declared {}, and its stored value is {}{}", quote(name), graph::print(declared),
                                           dtype_name(constant.dtype), constant.shape.str())};
}

Status GraphImport::add_inputs(const GraphProto& proto) {
  std::unordered_set<std::string_view> seen;
  for (const ValueInfoProto& input : proto.inputs) {
    if (input.name.empty()) return Error{Code::kCorrupt, "an input has no name"};
    if (!seen.insert(input.name).second) return Error{Code::kCorrupt, fmt::format("input {} is declared twice", quote(input.name))};
    if (values_.contains(input.name)) continue;  // a weight: before IR version 4 each was declared as an input, too
    auto type =
        outer_ && input.type.kind == TypeProto::Kind::kNone ? Result<graph::Type>(graph::Type{}) : type_from(input.type, input.name);
    if (!type) return type.error().in(fmt::format("input {}", quote(input.name)));
    SERIN_CHECK(check_standard(input.name, *type));
    define(input.name, graph_.add_input(std::string(input.name), *type));
  }
  return {};
}

Result<graph::Type> GraphImport::type_from(const TypeProto& proto, std::string_view name) {
  if (proto.kind == TypeProto::Kind::kNone) return Error{Code::kCorrupt, "has no type"};
  if (proto.kind == TypeProto::Kind::kOther)
    return Error{Code::kUnsupported, "is a map, a sparse tensor or a nested sequence, which is not supported"};
  graph::Type type;
  const auto nested = [&](TypeProto::Kind kind) { return proto.element && proto.element->kind == kind; };
  const bool too_deep =
      nested(TypeProto::Kind::kOptional) || (proto.kind == TypeProto::Kind::kSequence && nested(TypeProto::Kind::kSequence));
  if (too_deep) return Error{Code::kUnsupported, "is nested in a way that is not supported"};
  type.kind = proto.kind == TypeProto::Kind::kSequence   ? graph::ValueKind::kSequence
              : proto.kind != TypeProto::Kind::kOptional ? graph::ValueKind::kTensor
              : nested(TypeProto::Kind::kSequence)       ? graph::ValueKind::kOptionalSequence
                                                         : graph::ValueKind::kOptional;
  SERIN_TRY(type.dtype, dtype_from(proto.elem_type));
  if (!proto.shape) return type;
  if (!Shape::fits(proto.shape->size()))
    return Error{Code::kUnsupported, fmt::format("has {} dimensions, more than {}", proto.shape->size(), Shape::kMaxRank)};
  graph::Dims dims;
  for (size_t axis = 0; axis < proto.shape->size(); ++axis) {
    const DimensionProto& dimension = (*proto.shape)[axis];
    if (dimension.value.value_or(0) < -1) return Error{Code::kCorrupt, fmt::format("dimension {} is {}", axis, *dimension.value)};
    dims.push_back(dim_from(dimension, name, axis));
  }
  type.shape = std::move(dims);
  return type;
}

/// The number, the symbol, or a symbol of its own where the file does not say (some exporters write -1 or "?" for that).
graph::Dim GraphImport::dim_from(const DimensionProto& proto, std::string_view name, size_t axis) {
  if (proto.value.value_or(-1) >= 0) return *proto.value;
  const std::string wanted = symbol_from(proto.param);
  const std::string key = wanted.empty() ? "" : std::string(proto.param);
  if (const auto known = model_.symbols.find(key); !key.empty() && known != model_.symbols.end()) return graph::Dim::symbol(known->second);
  const std::string base = wanted.empty() ? fmt::format("{}_d{}", symbol_from(name), axis) : wanted;
  std::string symbol = base;
  for (int i = 2; !model_.symbols_taken.insert(symbol).second; ++i) symbol = fmt::format("{}_{}", base, i);
  if (!key.empty()) model_.symbols.emplace(key, symbol);
  return graph::Dim::symbol(symbol);
}

std::string GraphImport::unique_node_name(const NodeProto& proto) {
  const std::string base = proto.name.empty() ? fmt::format("{}_{}", proto.op_type, node_names_.size()) : std::string(proto.name);
  std::string name = base;
  for (int i = 2; !node_names_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return prefix_ + name;
}

/// An input of a function that its caller leaves out.
bool GraphImport::is_absent(std::string_view name) const {
  if (const auto found = values_.find(name); found != values_.end()) return found->second == graph::kNone;
  return outer_ && outer_->is_absent(name);
}

Status GraphImport::check_operands(const NodeProto& proto, const std::string& name) {
  for (const std::string_view input : proto.inputs) {
    if (input.empty() || find(input) != graph::kNone || is_absent(input)) continue;
    const auto maker = made_by_.find(input);
    const std::string why = maker == made_by_.end()
                                ? "nothing defines"
                                : fmt::format("a later node ({}) makes: the nodes form a cycle", printable(maker->second));
    return Error{Code::kCorrupt, fmt::format("node {} ({}): reads {}, which {}", quote(name), printable(proto.op_type), quote(input), why)};
  }
  return {};
}

Status GraphImport::add_node(const NodeProto& proto) {
  if (++model_.nodes > model_.node_limit) return Error{Code::kTooLarge, fmt::format("more than {} nodes", model_.node_limit)};
  const std::string name = unique_node_name(proto);
  SERIN_CHECK(check_operands(proto, name));

  if (!call_) return import_node(proto, name);
  SERIN_TRY(const NodeProto resolved, with_attributes_of_call(proto));
  return import_node(resolved, name);
}

/// What the file itself says about an operator goes before what we know of one with that name.
Status GraphImport::import_node(const NodeProto& proto, const std::string& name) {
  const auto function = model_.functions.find({without_alias(proto.domain), proto.op_type, proto.overload});
  return function == model_.functions.end() ? lower_node(proto, name) : expand(*function->second, proto, name);
}

Status GraphImport::lower_node(const NodeProto& proto, const std::string& name) {
  const OperatorRow* const row = find_operator(proto.domain, proto.op_type);
  if (!row) {
    refuse_node(proto, name, "");
    return {};
  }
  const int64_t opset = opsets().standard;
  if (is_default_domain(proto.domain) ? opset == 0 : !opsets().others.contains(proto.domain)) {
    refuse_node(proto, name, ": the model does not import its operator set");
    return {};
  }
  if (is_default_domain(proto.domain) && opset < row->since && row->since > kFirstModernOpset) {
    refuse_node(proto, name, fmt::format(": exists from opset {} on, the model imports {}", row->since, opset));
    return {};
  }

  const bool old = is_default_domain(proto.domain) && opset < kFirstModernOpset;
  const NodeProto modern = old ? modern_attributes(proto) : NodeProto();
  NodeImport node(*this, old ? modern : proto, name, row->attributes);
  if (old) modernise_operands(node);
  const auto context = [&] { return fmt::format("node {} ({})", quote(name), printable(proto.op_type)); };
  if (auto status = check_counts(*row, node); !status) return status.error().in(context());
  row->import(node, row->op);
  if (const auto unread = node.unread_attribute(); unread && !node.error())
    node.corrupt(fmt::format("attribute {} is not one of {} in opset {}", quote(*unread), proto.op_type, opset));
  if (node.error() && node.error()->code == Code::kUnsupported) {
    refuse_node(proto, name, ": " + node.error()->message);
    return {};
  }
  if (node.error()) return node.error()->in(context());
  if (error_) return error_->in(context());
  return {};
}

/// Notes what is not supported and gives the outputs placeholders, so that the walk can go on and find the rest.
void GraphImport::refuse_node(const NodeProto& proto, const std::string& name, std::string_view why) {
  const std::string type = is_default_domain(proto.domain) ? std::string(proto.op_type) : fmt::format("{}.{}", proto.domain, proto.op_type);
  model_.unsupported.push_back(fmt::format("{} ({}{})", quote(name), printable(type), why));
  for (const std::string_view output : proto.outputs)
    if (!values_.contains(output)) define(output, graph_.add_value(std::string(output), {}));
}

Status GraphImport::set_outputs(const GraphProto& proto) {
  if (proto.outputs.empty()) return Error{Code::kCorrupt, "the graph has no outputs"};
  std::vector<graph::ValueId> outputs;
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  for (const ValueInfoProto& output : proto.outputs) {
    const graph::ValueId value = find(output.name);
    if (value == graph::kNone) return Error{Code::kCorrupt, fmt::format("output {} is not made by any node", quote(output.name))};
    if (!seen.insert(output.name).second && !outer_)
      return Error{Code::kCorrupt, fmt::format("output {} is declared twice", quote(output.name))};
    outputs.push_back(value);
    names.emplace_back(output.name);
  }
  graph_.set_outputs(std::move(outputs));
  graph_.set_output_names(std::move(names));
  return {};
}

}  // namespace serin::formats::onnx
