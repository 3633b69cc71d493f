// import.cc: evaluates the nodes that a signature's outputs need, each after its operands.
//
// Operands are followed with a stack of its own, not by recursion: a file may have a chain of a million nodes. Only calls of functions
// recurse, to a limit. Control edges are not followed: variables are constants here, so that no order of side effects is left to keep.

#include "runtime/formats/tensorflow/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/formats/tensorflow/operators.h"
#include "runtime/formats/tensorflow/tensor.h"
#include "runtime/formats/unsupported.h"

namespace serin::formats::tf {
namespace {

/// Letters, digits and underscores, so that a symbol can be typed on a command line (--dim seq=128).
std::string word_of(std::string_view text) {
  std::string word;
  for (const char c : text) word += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ? c : '_';
  return word;
}

/// Attributes that name functions.
constexpr std::string_view kFunctionAttrs[] = {"f", "body", "cond", "then_branch", "else_branch", "branches"};

template <class Take>
void each_function(const NodeDef& node, Take&& take) {
  for (const std::string_view key : kFunctionAttrs) {
    const auto found = node.attrs.find(key);
    if (found == node.attrs.end()) continue;
    if (!found->second.function.empty()) take(found->second.function);
    for (const Attr& each : found->second.list)
      if (!each.function.empty()) take(each.function);
  }
}

std::vector<std::string_view> result_edges(const FunctionDef& function) {
  std::vector<std::string_view> edges;
  for (const std::string_view result : function.results) {
    const auto found = function.returns.find(result);
    edges.push_back(found == function.returns.end() ? std::string_view() : found->second);
  }
  return edges;
}

std::string_view known_suffix(std::string_view op) {
  if (op == "PyFunc" || op == "EagerPyFunc" || op == "PyFuncStateless") return ", which calls Python";
  if (op == "Enter" || op == "Merge" || op == "NextIteration") return ", a loop of TensorFlow 1: export it again with control flow v2";
  return "";
}

}  // namespace

/// All unsupported nodes at once, also those in functions.
Status Importer::check_operators(const std::vector<std::string_view>& edges) const {
  std::vector<std::string> unsupported;
  std::set<std::string_view> functions;
  std::vector<std::pair<const Body*, std::vector<std::string_view>>> bodies = {{&program_.main(), edges}};
  while (!bodies.empty()) {
    auto [body, open] = std::move(bodies.back());
    bodies.pop_back();
    std::set<std::string_view> seen;
    while (!open.empty()) {
      const Edge edge = parse_edge(open.back());
      open.pop_back();
      const auto node = body->nodes.find(edge.node);
      if (edge.control || node == body->nodes.end() || !seen.insert(edge.node).second) continue;
      if (!find_operator(node->second->op))
        unsupported.push_back(fmt::format("'{}' ({}{})", edge.node, node->second->op, known_suffix(node->second->op)));
      open.insert(open.end(), node->second->inputs.begin(), node->second->inputs.end());
      each_function(*node->second, [&](std::string_view name) {
        const Body* const callee = program_.function(name);
        if (callee && functions.insert(name).second) bodies.emplace_back(callee, result_edges(*callee->function));
      });
    }
  }
  if (unsupported.empty()) return {};
  return unsupported_nodes(unsupported);
}

Result<ValuePtr> Importer::value_of(const Body& body, const Values& values, const Edge& edge) const {
  const auto found = values.find(edge.node);
  if (found == values.end()) return Error{Code::kCorrupt, fmt::format("reads '{}', which does not exist", edge.node)};
  const auto node = body.nodes.find(edge.node);
  const OperatorRow* const row = node == body.nodes.end() || edge.output.empty() ? nullptr : find_operator(node->second->op);
  const size_t place = row ? output_place(*row, node->second->attrs, edge.output, edge.index) : edge.index;
  if (place >= found->second.size())
    return Error{Code::kCorrupt,
                 fmt::format("reads output {} {} of '{}', which has {}", edge.output, edge.index, edge.node, found->second.size())};
  return found->second[place];
}

Result<std::vector<ValuePtr>> Importer::evaluate(Scope& scope, const Body& body, Values values,
                                                 const std::vector<std::string_view>& edges) {
  struct Open {
    const NodeDef* node;
    size_t next = 0;
  };
  std::vector<Open> stack;
  std::set<std::string_view> visiting;
  const auto enter = [&](std::string_view name) -> Status {
    if (values.contains(name)) return {};
    const auto node = body.nodes.find(name);
    if (node == body.nodes.end()) return Error{Code::kCorrupt, fmt::format("node '{}' does not exist", name)};
    if (!visiting.insert(name).second) return Error{Code::kCorrupt, fmt::format("node '{}' depends on itself", name)};
    if (++nodes_ > limits_.nodes)
      return Error{Code::kTooLarge, fmt::format("more than {} nodes after its functions are written out", limits_.nodes)};
    stack.push_back({node->second});
    return {};
  };
  for (const std::string_view wanted : edges) {
    SERIN_CHECK(enter(parse_edge(wanted).node));
    while (!stack.empty()) {
      Open& top = stack.back();
      const NodeDef& def = *top.node;
      if (top.next < def.inputs.size()) {
        const Edge edge = parse_edge(def.inputs[top.next++]);
        if (!edge.control) SERIN_CHECK(enter(edge.node));  // may move the stack, so that `top` is not used again
        continue;
      }
      std::vector<ValuePtr> inputs;
      for (const std::string_view input : def.inputs) {
        const Edge edge = parse_edge(input);
        if (edge.control) continue;
        auto operand = value_of(body, values, edge);
        if (!operand) return operand.error().in(fmt::format("node '{}'", def.name));
        inputs.push_back(std::move(*operand));
      }
      std::vector<ValuePtr> outputs;
      SERIN_CHECK(import_node(scope, def, std::move(inputs), outputs));
      values.emplace(def.name, std::move(outputs));
      visiting.erase(def.name);
      stack.pop_back();
    }
  }
  std::vector<ValuePtr> results;
  for (const std::string_view wanted : edges) {
    SERIN_TRY(ValuePtr value, value_of(body, values, parse_edge(wanted)));
    results.push_back(std::move(value));
  }
  return results;
}

Status Importer::import_node(Scope& scope, const NodeDef& def, std::vector<ValuePtr> inputs, std::vector<ValuePtr>& outputs) {
  const OperatorRow* const row = find_operator(def.op);
  if (!row) return Error{Code::kUnsupported, fmt::format("node '{}': operator {} is not supported", def.name, def.op)};
  const auto count = static_cast<int>(inputs.size());
  if (count < row->min_inputs || (row->max_inputs >= 0 && count > row->max_inputs))
    return Error{Code::kCorrupt, fmt::format("node '{}' ({}) has {} operands", def.name, def.op, count)};
  scope.builder().start(def.name);
  NodeImport node(*this, scope, def, std::move(inputs));
  row->import(node, row->op);
  if (scope.builder().error()) {
    const Error& error = *scope.builder().error();
    return error.message.find(def.name) == std::string::npos ? error.in(fmt::format("node '{}' ({})", def.name, def.op)) : error;
  }
  outputs = node.take_outputs();
  return {};
}

std::vector<ValuePtr> Importer::apply(Scope& scope, const NodeDef& def, std::vector<ValuePtr> inputs) {
  const OperatorRow* const row = find_operator(def.op);
  if (!row) scope.builder().fail(Code::kInternal, fmt::format("operator {} is not known", def.op));
  if (scope.builder().error()) return {};
  NodeImport node(*this, scope, def, std::move(inputs));
  row->import(node, row->op);
  return scope.builder().error() ? std::vector<ValuePtr>() : node.take_outputs();
}

std::vector<ValuePtr> Importer::call(Scope& scope, std::string_view name, const std::vector<ValuePtr>& arguments) {
  const Body* const body = program_.function(name);
  const auto fail = [&scope](Code code, std::string_view problem) {
    scope.builder().fail(code, problem);
    return std::vector<ValuePtr>();
  };
  if (!body) return fail(Code::kCorrupt, fmt::format("function '{}' does not exist", name));
  if (body->function->arguments.size() != arguments.size())
    return fail(Code::kCorrupt,
                fmt::format("function '{}' has {} arguments, {} are given", name, body->function->arguments.size(), arguments.size()));
  if (depth_ >= limits_.nesting) return fail(Code::kCorrupt, fmt::format("function '{}' is called {} calls deep", name, depth_));
  Values values;
  for (size_t i = 0; i < arguments.size(); ++i) values.emplace(body->function->arguments[i], std::vector<ValuePtr>{arguments[i]});
  const std::string node = scope.builder().node();
  ++depth_;
  auto results = evaluate(scope, *body, std::move(values), result_edges(*body->function));
  --depth_;
  if (!results) return fail(results.error().code, results.error().message);
  scope.builder().start(node);
  return std::move(*results);
}

Importer::ClosedBody Importer::open_body(Scope& outer, const std::vector<ValuePtr>& arguments, const std::vector<std::string>& names) {
  ClosedBody body{std::make_unique<Scope>(), {}, {}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& from = *arguments[i];
    auto to = std::make_shared<Value>();
    to->resource = from.resource;
    if (from.tensor()) {
      const ValueId id = outer.plain(*arguments[i]);
      if (const graph::ConstantPtr constant = outer.graph().constant(id)) {
        to->plain = body.scope->builder().constant(outer.graph().value(id).name, constant);
      } else {
        to->plain = body.scope->graph().add_input(names[i], outer.graph().value(id).type);
        body.inputs.push_back(i);
      }
    }
    body.arguments.push_back(std::move(to));
  }
  return body;
}

Result<graph::Type> Importer::input_type(std::string_view key, const TensorInfo& info) {
  const auto dtype = dtype_of(info.dtype);
  if (info.name.empty()) return Error{Code::kUnsupported, fmt::format("input '{}' is a sparse or composite tensor", key)};
  if (!dtype) return Error{Code::kUnsupported, fmt::format("input '{}' has dtype {}", key, info.dtype)};
  graph::Type type{graph::ValueKind::kTensor, *dtype, std::nullopt};
  if (!info.shape) return type;
  type.shape.emplace();
  for (size_t axis = 0; axis < info.shape->size(); ++axis) {
    const int64_t size = (*info.shape)[axis];
    if (size >= 0) {
      type.shape->emplace_back(size);
      continue;
    }
    const std::string base = axis == 0 ? "batch" : fmt::format("{}_d{}", word_of(key), axis);
    const int taken = axis == 0 ? 0 : symbols_[base]++;
    std::string symbol = taken == 0 ? base : fmt::format("{}_{}", base, taken + 1);
    symbols_.emplace(symbol, 1);
    const auto other = equal_.find(symbol);
    type.shape->push_back(graph::Dim::symbol(other == equal_.end() ? symbol : other->second));
  }
  return type;
}

/// Sizes that are the same for every request of a model that works: an axis of one size only broadcasts.
void Importer::note_equal(const graph::Dim& a, const graph::Dim& b) {
  const auto first = a.symbol_name(), second = b.symbol_name();
  if (!first || !second || *first == *second || *first == "batch" || *second == "batch") return;
  if (!symbols_.contains(*first) || !symbols_.contains(*second)) return;
  const auto& [kept, gone] = std::minmax(*first, *second);
  for (auto& [symbol, stands_for] : equal_)
    if (stands_for == gone) stands_for = kept;
  equal_.insert_or_assign(gone, kept);
}

Result<graph::Graph> Importer::run(const SignatureDef& signature, const EqualSizes& equal) {
  equal_ = equal;
  if (signature.outputs.empty()) return Error{Code::kCorrupt, "the signature has no outputs"};
  std::vector<std::string_view> edges;
  std::vector<std::string> names;
  for (const auto& [key, info] : signature.outputs) {
    if (info.name.empty()) return Error{Code::kUnsupported, fmt::format("output '{}' is a sparse or composite tensor", key)};
    edges.push_back(info.name);
    names.emplace_back(key);
  }
  SERIN_CHECK(check_operators(edges));
  Scope scope;
  scope.shared = state_.shared();
  Values values;
  for (const auto& [key, info] : signature.inputs) {
    SERIN_TRY(graph::Type type, input_type(key, info));
    const ValueId id = scope.graph().add_input(std::string(key), std::move(type));
    values.emplace(parse_edge(info.name).node, std::vector<ValuePtr>{plain_value(id)});
  }
  SERIN_TRY(std::vector<ValuePtr> results, evaluate(scope, program_.main(), std::move(values), edges));
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    scope.builder().start(names[i]);
    ValueId id = scope.plain(*results[i]);
    if (id == kNone) return Error{Code::kUnsupported, fmt::format("output '{}' is no tensor", names[i])};
    if (scope.graph().constant(id) || std::ranges::find(scope.graph().inputs(), id) != scope.graph().inputs().end())
      id = scope.builder().add(graph::Op::kIdentity, {id});
    outputs.push_back(id);
  }
  if (scope.builder().error()) return *scope.builder().error();
  scope.graph().set_outputs(std::move(outputs));
  scope.graph().set_output_names(std::move(names));
  return std::move(scope.graph());
}

}  // namespace serin::formats::tf
