// graph_import.cc: walks through the nodes in their order; a value that no earlier node made is an error, so that cycles are, too.

#include "runtime/formats/torch/graph_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace serin::formats::torch {

using graph::kNone;
using graph::ValueId;

namespace {

constexpr int kViews = 64;  ///< views of views

/// The names of a node's results: one of a tensor or number, those of a list.
std::vector<std::string> result_names(const ProgramNode& node) {
  std::vector<std::string> names;
  for (const Argument& result : node.results) {
    if (result.value.is_array())
      for (const Json& each : result.value.items()) names.push_back(each["name"].text_or(""));
    else
      names.push_back(result.value["name"].text().value_or(result.value["as_name"].text_or("")));
  }
  return names;
}

/// The row that reads a node: of complex numbers, another than of real ones.
const OperatorRow* row_of(const ProgramGraph& program, const ProgramNode& node) {
  const std::string functional = functional_target(node.target);
  const std::string& target = functional.empty() ? node.target : functional;
  return program.is_complex(node) ? find_complex_operator(target) : find_operator(target);
}

std::string self_name(const ProgramNode& node) {
  return node.positional.empty() ? std::string() : node.positional[0].value["name"].text_or("");
}

}  // namespace

void GraphImport::define(const std::string& name, ValueId value) { values_[name] = Binding{.value = value}; }

const TensorMeta* GraphImport::meta(std::string_view name) const { return program_.meta(name); }

ValueId GraphImport::turned(ValueId weight) {
  const graph::ConstantPtr constant = b_.graph().constant(weight);
  if (!constant || !constant->recipe || constant->shape.rank() != 2) return b_.transpose(weight, {1, 0});
  const auto [found, is_new] = turned_.try_emplace(weight, kNone);
  if (is_new) {
    const int64_t rows = constant->shape[0], columns = constant->shape[1];
    const auto recipe = [constant, rows, columns, width = dtype_size(constant->dtype)](std::span<std::byte> to) -> Status {
      const auto from = constant->data();
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          std::memcpy(to.data() + static_cast<size_t>(column * rows + row) * width,
                      from.get() + static_cast<size_t>(row * columns + column) * width, width);
      return {};
    };
    found->second = b_.constant(b_.graph().value(weight).name, graph::make_constant(constant->dtype, Shape{columns, rows}, recipe));
  }
  return found->second;
}

ValueId GraphImport::find(std::string_view name) {
  const auto found = values_.find(name);
  if (found == values_.end()) return kNone;
  Binding& view = found->second;
  const auto parent = values_.find(view.parent);
  if (view.parent.empty() || parent == values_.end()) return view.value;
  if (refreshing_ == kViews) {
    b_.fail(Code::kUnsupported, "views of views, nested too deep");
    return view.value;
  }
  ++refreshing_;
  const ValueId shown = find(view.parent);
  if (view.parent_version != parent->second.version) {
    if (view.alias == Alias::kMaybe)
      b_.fail(Code::kUnsupported,
              fmt::format("reads '{}', which may show what was written later; export program.run_decompositions({{}})", name));
    if (view.maker) {
      NodeImport again(*this, b_, *view.maker);
      const OperatorRow* const row = row_of(program_, *view.maker);
      row->import(again, row->op);
      if (view.result < again.results().size()) view.value = again.results()[view.result];
    } else {
      view.value = shown;
    }
    view.parent_version = parent->second.version;
    ++view.version;
  }
  --refreshing_;
  return view.value;
}

void GraphImport::write(const std::string& name, ValueId value) {
  std::string at = name;
  for (int depth = 0;; ++depth) {
    Binding& target = values_[at];
    target.value = value;
    ++target.version;
    const auto parent = values_.find(target.parent);
    if (target.parent.empty() || parent == values_.end()) return;
    if (depth == kViews || target.alias == Alias::kMaybe)
      return b_.fail(Code::kUnsupported, "writes into what may be a view; export program.run_decompositions({})");
    if (target.maker) {
      NodeImport view(*this, b_, *target.maker);
      value = written_back(view, find(target.parent), value);
    }
    target.parent_version = parent->second.version + 1;
    at = target.parent;
  }
}

/// Whether a reshape, contiguous() or conversion shows its operand: it does if that is dense and has the same type.
Alias GraphImport::resolved(std::string_view from, std::string_view to, const OperatorRow& row) const {
  const TensorMeta *const before = meta(from), *const after = meta(to);
  if (!before || !after) return Alias::kMaybe;
  if (before->dtype != after->dtype) return Alias::kNone;
  if (before->strides.size() != before->sizes.size()) return Alias::kMaybe;
  graph::Dim expected = 1;
  for (size_t i = before->sizes.size(); i-- > 0;) {
    if (before->sizes[i].value() == 1) continue;
    if (!before->strides[i] || !expected.known()) return Alias::kMaybe;
    if (expected.value() != before->strides[i]) return row.target == "aten.contiguous" ? Alias::kNone : Alias::kMaybe;
    expected = expected * before->sizes[i];
  }
  return Alias::kView;
}

Status GraphImport::check(const ProgramNode& node, std::string_view name, ValueId value) {
  const TensorMeta* const declared = meta(name);
  // torch declares wrong shapes for the last states of recurrent networks.
  const bool recurrent = std::ranges::any_of(std::array{"aten.lstm.", "aten.gru.", "aten.rnn_"},
                                             [&](const char* each) { return node.target.find(each) != std::string::npos; });
  if (!declared || value == kNone || recurrent) return {};
  const auto contradicts = [&](std::string_view what) {
    return Error{Code::kCorrupt, fmt::format("node '{}' ({}): gives {}, but the program declares {}{}", name, node.target, what,
                                             dtype_name(declared->dtype), print(value_sizes(*declared)))};
  };
  const graph::Type& type = b_.type(value);
  if (type.dtype != declared->dtype) return contradicts(print(type));
  if (!type.shape) return {};
  const graph::Dims sizes = value_sizes(*declared);
  if (type.shape->size() != sizes.size()) return contradicts(print(type));
  for (size_t i = 0; i < type.shape->size(); ++i) {
    const auto got = (*type.shape)[i].value(), said = sizes[i].value();
    if (got && said && *got != *said) return contradicts(print(type));
  }
  return {};
}

Status GraphImport::import(const ProgramNode& node) {
  b_.start(node.name);
  const std::string functional = functional_target(node.target);
  const OperatorRow* const row = row_of(program_, node);
  if (!row) return Error{Code::kUnsupported, fmt::format("node '{}': {} is not supported", node.name, node.target)};
  NodeImport import(*this, b_, node);
  row->import(import, row->op);
  const auto fail = [&] {
    const Error& error = *b_.error();
    const std::string operation = fmt::format(" ({})", node.target);
    return Error{error.code, error.message + (error.message.ends_with(operation) ? "" : operation)};
  };
  if (b_.error()) return fail();
  const std::vector<std::string> names = result_names(node);
  if (import.results().size() < names.size())
    return Error{Code::kCorrupt,
                 fmt::format("node '{}' ({}): declares {} results, has {}", node.name, node.target, names.size(), import.results().size())};
  const std::string self = self_name(node);
  if (!functional.empty()) {
    const auto target = values_.find(self);
    if (target == values_.end()) return Error{Code::kCorrupt, fmt::format("node '{}': writes into nothing", node.name)};
    ValueId value = b_.cast(import.results().at(0), b_.dtype(target->second.value));
    if (b_.dims(value) != b_.dims(target->second.value)) value = expanded(import, value, b_.add(graph::Op::kShape, {target->second.value}));
    if (value != target->second.value) write(self, value);
    if (b_.error()) return fail();
    if (!names.empty() && !names[0].empty())
      values_[names[0]] = Binding{.value = value, .parent = self, .parent_version = target->second.version, .alias = Alias::kView};
    return {};
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    const ValueId value = import.results()[i];
    SERIN_CHECK(check(node, names[i], value));
    if (values_.contains(names[i])) return Error{Code::kCorrupt, fmt::format("two nodes make '{}'", names[i])};
    Binding made{.value = value};
    const auto parent = values_.find(self);
    const Alias alias = row->alias == Alias::kMaybe ? resolved(self, names[i], *row) : row->alias;
    if (alias != Alias::kNone && parent != values_.end()) {
      made.parent = self;
      made.parent_version = parent->second.version;
      made.maker = &node;
      made.result = i;
      made.alias = alias;
    }
    values_[names[i]] = made;
  }
  return {};
}

Status GraphImport::run() {
  for (const ProgramNode& node : program_.nodes) SERIN_CHECK(import(node));
  return {};
}

Result<std::vector<ValueId>> GraphImport::inlined(const Json& json, const std::vector<ValueId>& inputs) {
  SERIN_TRY(const ProgramGraph program, read_graph(json));
  if (program.inputs.size() != inputs.size())
    return Error{Code::kCorrupt, fmt::format("a graph of {} inputs gets {}", program.inputs.size(), inputs.size())};
  GraphImport inner(b_, program);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Json& input = program.inputs[i].value;
    inner.define(input["name"].text().value_or(input["as_name"].text_or("")), inputs[i]);
  }
  const std::string outside = b_.node();
  SERIN_CHECK(inner.run());
  b_.start(outside);
  std::vector<ValueId> outputs;
  for (const Argument& output : program.outputs) {
    const std::string name = output.value["name"].text().value_or(output.value["as_name"].text_or(""));
    outputs.push_back(inner.find(name));
    if (outputs.back() == kNone)
      return Error{Code::kCorrupt, fmt::format("a graph within the program returns '{}', which nothing makes", name)};
  }
  return outputs;
}

std::vector<std::string> nodes_without_reader(const ProgramGraph& graph) {
  std::vector<std::string> found;
  std::vector<ProgramGraph> inner;
  const auto examine = [&](const ProgramGraph& each) {
    for (const ProgramNode& node : each.nodes) {
      const bool complex = each.is_complex(node);
      if (!row_of(each, node)) found.push_back(fmt::format("'{}' ({}{})", node.name, node.target, complex ? " of complex numbers" : ""));
      for (const Argument& argument : node.positional)
        if (argument.kind == "as_graph")
          if (auto body = read_graph(argument.value["graph"])) inner.push_back(std::move(*body));
    }
  };
  examine(graph);
  while (!inner.empty()) {
    const ProgramGraph next = std::move(inner.back());
    inner.pop_back();
    examine(next);
  }
  return found;
}

}  // namespace serin::formats::torch
