// node.cc: finds operands and results by name (ProgramDesc) or by place (PIR), and attributes that are operands in some programs.

#include "runtime/formats/paddle/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/formats/paddle/scope.h"

namespace serin::formats::paddle {
namespace {

/// Calls `take` with each word of "a b" or "a|b" until it returns true.
template <class F>
bool any_word(std::string_view words, char between, F&& take) {
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find(between, begin), words.size());
    if (end > begin && take(words.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

std::string word(std::string_view words, size_t place) {
  std::string found;
  any_word(words, ' ', [&](std::string_view each) {
    if (place-- > 0) return false;
    found = each;
    return true;
  });
  return found;
}

const std::vector<ValueId> kNoValues;
constexpr int64_t kMostKnown = 1024;  // elements of a list that is looked into

}  // namespace

Node::Node(Scope& scope, const Operation& source, std::string_view operands, std::string_view results)
    : b(scope.b), scope_(scope), source_(source), operands_(operands), results_(results) {
  for (size_t i = 0; i < source.inputs.size(); ++i) {
    const Slot& slot = source.inputs[i];
    std::string name = slot.name.empty() ? word(operands_, i) : slot.name;
    // Control flow has operands that its row does not name: values that the bodies read, or that are not defined yet.
    if (!source.blocks.empty() || source.type == "select_input")
      if (!any_word(operands_, ' ', [&](std::string_view each) { return each == name; })) continue;
    std::vector<ValueId> values;
    for (const std::string& value : slot.values)
      if (!value.empty() && !scope.array(value)) values.push_back(scope.find(value));
    values_.emplace_back(std::move(name), std::move(values));
  }
}

const std::vector<ValueId>& Node::all(std::string_view slot) const {
  for (const auto& [name, values] : values_)
    if (name == slot) return values;
  return kNoValues;
}

ValueId Node::maybe(std::string_view slot) const {
  const std::vector<ValueId>& values = all(slot);
  return values.empty() ? kNone : values[0];
}

ValueId Node::in(std::string_view slot) const {
  const ValueId value = maybe(slot);
  if (value != kNone) return value;
  corrupt(fmt::format("operand '{}' of {} is missing", slot, source_.type));
  return b.number(DType::kFloat32, 0);  // keeps the functions free of checks; the error ends the import
}

const Attribute* Node::find(std::string_view names) const {
  const Attribute* found = nullptr;
  any_word(names, '|', [&](std::string_view name) {
    const auto attribute = source_.attributes.find(name);
    if (attribute != source_.attributes.end()) found = &attribute->second;
    return found != nullptr;
  });
  return found;
}

int64_t Node::integer(std::string_view names, int64_t fallback) const {
  const Attribute* const found = find(names);
  if (!found) return fallback;
  if (const auto* const value = std::get_if<int64_t>(found)) return *value;
  if (const auto* const value = std::get_if<double>(found); value && std::abs(*value) < 9e18) return static_cast<int64_t>(*value);
  if (const auto* const value = std::get_if<List>(found); value && value->size() == 1) return value->front();
  corrupt(fmt::format("attribute '{}' is no number", names));
  return fallback;
}

double Node::number(std::string_view names, double fallback) const {
  const Attribute* const found = find(names);
  if (!found) return fallback;
  if (const auto* const value = std::get_if<double>(found)) return *value;
  if (const auto* const value = std::get_if<int64_t>(found)) return static_cast<double>(*value);
  if (const auto* const value = std::get_if<std::vector<double>>(found); value && value->size() == 1) return value->front();
  corrupt(fmt::format("attribute '{}' is no number", names));
  return fallback;
}

std::string Node::text(std::string_view names, std::string_view fallback) const {
  const Attribute* const found = find(names);
  const auto* const value = found ? std::get_if<std::string>(found) : nullptr;
  if (found && !value) corrupt(fmt::format("attribute '{}' is no text", names));
  return value ? *value : std::string(fallback);
}

std::optional<List> Node::integers(std::string_view names) const {
  const Attribute* const found = find(names);
  if (!found) return std::nullopt;
  if (const auto* const values = std::get_if<List>(found)) return *values;
  if (const auto* const value = std::get_if<int64_t>(found)) return List{*value};
  if (const auto* const values = std::get_if<std::vector<double>>(found); values && values->empty()) return List{};
  corrupt(fmt::format("attribute '{}' is no list of integers", names));
  return std::nullopt;
}

std::optional<std::vector<double>> Node::numbers(std::string_view names) const {
  const Attribute* const found = find(names);
  if (!found) return std::nullopt;
  if (const auto* const values = std::get_if<std::vector<double>>(found)) return *values;
  if (const auto* const values = std::get_if<List>(found)) return std::vector<double>(values->begin(), values->end());
  return std::vector<double>{number(names, 0)};
}

DType Node::dtype(std::string_view names, DType fallback) const {
  const Attribute* const found = find(names);
  if (!found) return fallback;
  DType dtype = DType::kUndefined;
  if (const auto* const name = std::get_if<std::string>(found)) {
    if (name->starts_with("Undefined") || name->starts_with("undefined") || name->empty()) return fallback;
    dtype = dtype_of_name(*name);
  } else if (const auto* const number = std::get_if<int64_t>(found)) {
    if (*number < 0) return fallback;
    dtype = dtype_of_number(*number);
  }
  if (dtype == DType::kUndefined) refuse(fmt::format("the type that attribute '{}' gives", names));
  return dtype;
}

/// Of a small constant; a number may be stored as a float.
std::optional<List> Node::known_elements(ValueId value) const {
  const graph::ConstantPtr constant = b.graph().constant(value);
  if (!constant || constant->elements() > kMostKnown) return std::nullopt;
  if (auto integers = graph::integers_of(*constant)) return integers;
  const auto number = graph::number_of(*constant);
  return number && std::abs(*number) < 9e18 ? std::optional(List{static_cast<int64_t>(*number)}) : std::nullopt;
}

ValueId Node::operand(std::string_view slots) const {
  ValueId found = kNone;
  any_word(slots, ' ', [&](std::string_view slot) {
    const std::vector<ValueId>& values = all(slot);
    if (values.empty()) return false;
    std::vector<ValueId> parts;
    for (const ValueId value : values) {
      if (const auto known = known_elements(value)) {
        parts.push_back(b.integers(*known));
        continue;
      }
      const ValueId part = b.cast(value, DType::kInt64);
      parts.push_back(b.rank(part) == size_t{1} ? part : b.reshape(part, {-1}));
    }
    found = concat(std::move(parts), 0);
    return true;
  });
  return found;
}

ValueId Node::list(std::string_view names, std::string_view slots) {
  const ValueId computed = operand(slots);
  if (computed != kNone) return computed;
  const auto values = integers(names);
  return values ? b.integers(*values) : kNone;
}

std::optional<List> Node::known_list(std::string_view names, std::string_view slots) {
  const ValueId computed = operand(slots);
  if (computed == kNone) return integers(names);
  const auto known = b.known_integers(computed);
  if (!known) refuse(fmt::format("{} whose '{}' is computed", source_.type, slots));
  return known;
}

int64_t Node::known_integer(std::string_view names, std::string_view slots, int64_t fallback) {
  const auto values = known_list(names, slots);
  if (!values) return fallback;
  if (values->size() == 1) return values->front();
  corrupt(fmt::format("'{}' is not one number", names));
  return fallback;
}

std::optional<double> Node::known_number(std::string_view names, std::string_view slots, double fallback) const {
  ValueId value = kNone;
  any_word(slots, ' ', [&](std::string_view slot) { return (value = maybe(slot)) != kNone; });
  if (value == kNone) return number(names, fallback);
  if (const graph::ConstantPtr constant = b.graph().constant(value)) return graph::number_of(*constant);
  const auto known = b.known_integers(value);
  return known && known->size() == 1 ? std::optional(static_cast<double>(known->front())) : std::nullopt;
}

ValueId Node::scalar(std::string_view names, std::string_view slots, DType dtype, double fallback) {
  if (const auto known = known_number(names, slots, fallback)) return b.number(dtype, *known);
  ValueId value = kNone;
  any_word(slots, ' ', [&](std::string_view slot) { return (value = maybe(slot)) != kNone; });
  value = b.cast(value, dtype);
  return b.rank(value) == size_t{0} ? value : b.reshape(value, {});
}

const Slot* Node::slot(const std::vector<Slot>& slots, std::string_view names, std::string_view name) const {
  for (size_t i = 0; i < slots.size(); ++i)
    if ((slots[i].name.empty() ? word(names, i) : slots[i].name) == name) return &slots[i];
  return nullptr;
}

bool Node::pir() const { return scope_.program.pir; }

bool Node::wants(std::string_view name, size_t i) const {
  const Slot* const found = slot(source_.outputs, results_, name);
  return found && i < found->values.size() && scope_.program.reads.contains(found->values[i]);
}

size_t Node::out_count(std::string_view name) const {
  const Slot* const found = slot(source_.outputs, results_, name);
  return found ? found->values.size() : 0;
}

DType Node::out_dtype(std::string_view name) const {
  const Slot* const found = slot(source_.outputs, results_, name);
  return found && !found->values.empty() ? scope_.declared(found->values[0]).dtype : DType::kUndefined;
}

List Node::out_dims(std::string_view name) const {
  const Slot* const found = slot(source_.outputs, results_, name);
  return found && !found->values.empty() ? scope_.declared(found->values[0]).dims : List{};
}

void Node::out(std::string_view name, ValueId value, size_t i) {
  if (!wants(name, i)) return;
  const std::string& result = slot(source_.outputs, results_, name)->values[i];
  // Before Paddle 2.5 a number had rank 1.
  const Declared& declared = scope_.declared(result);
  if (b.rank(value) == size_t{0} && declared.dtype != DType::kUndefined && declared.dims == List{1}) value = b.reshape(value, {1});
  scope_.values[result] = value;
}

void Node::outs(std::string_view name, const std::vector<ValueId>& values) {
  if (out_count(name) > values.size()) corrupt(fmt::format("has {} results, but declares {}", values.size(), out_count(name)));
  for (size_t i = 0; i < values.size(); ++i) out(name, values[i], i);
}

size_t Node::rank(ValueId x) const {
  const auto known = b.rank(x);
  if (!known) refuse(fmt::format("{} of a tensor of unknown rank", source_.type));
  return known.value_or(0);
}

int64_t Node::axis(int64_t axis, size_t rank) const {
  const auto count = static_cast<int64_t>(rank);
  const bool there = axis >= -count && axis < count;
  if (!there) corrupt(fmt::format("axis {} of a tensor of rank {}", axis, rank));
  return there ? (axis < 0 ? axis + count : axis) : 0;
}

ValueId Node::size_of(ValueId x, int64_t axis) const { return b.slice(shape_of(x), 0, axis, axis + 1); }

ValueId Node::concat(std::vector<ValueId> parts, int64_t axis) const {
  return parts.size() == 1 ? parts[0] : b.add(Op::kConcat, std::move(parts), {{"axis", axis}});
}

ValueId Node::floats(const std::vector<double>& values, const Shape& shape) const {
  std::vector<float> elements(values.begin(), values.end());
  return b.constant(graph::make_constant(DType::kFloat32, shape, elements.data()));
}

}  // namespace serin::formats::paddle
