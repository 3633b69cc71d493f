// node_import.cc: arguments of nodes by kind.

#include "runtime/formats/torch/node_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace serin::formats::torch {

using graph::kNone;
using graph::Op;
using graph::ValueId;

std::string_view NodeImport::overload() const {
  const std::string_view target = node_.target;
  return target.substr(std::min(target.rfind('.') + 1, target.size()));
}

const Argument* NodeImport::find(std::string_view name) const {
  const auto found = node_.arguments.find(name);
  return found == node_.arguments.end() || found->second.kind == "as_none" ? nullptr : &found->second;
}

void NodeImport::wrong_kind(std::string_view name, const Argument& argument, std::string_view wanted) {
  unsupported(fmt::format("argument '{}' is {}, not {}", name, argument.kind.empty() ? "nothing" : argument.kind.substr(3), wanted));
}

bool NodeImport::has(std::string_view name) const { return find(name) != nullptr; }

ValueId NodeImport::named(const Json& value, std::string_view what) {
  const auto name = value.text();
  const ValueId found = name ? scope_.find(*name) : kNone;
  if (found == kNone) corrupt(fmt::format("{} reads '{}', which nothing before it makes", what, name.value_or("")));
  return found;
}

void NodeImport::stand_in(std::string_view name, size_t index, ValueId value) { tensors_[{std::string(name), index}] = value; }

ValueId NodeImport::standing_in(std::string_view name, size_t index) const {
  const auto found = tensors_.empty() ? tensors_.end() : tensors_.find({std::string(name), index});
  return found == tensors_.end() ? kNone : found->second;
}

bool NodeImport::is_complex(std::string_view name) const {
  const Argument* const argument = find(name);
  if (!argument) return false;
  const auto names = tensor_names(*argument);
  const TensorMeta* const declared = names.empty() ? nullptr : scope_.meta(names[0]);
  return declared && declared->complex;
}

bool NodeImport::gives_complex() const {
  const TensorMeta* const declared = meta(0);
  return declared && declared->complex;
}

ValueId NodeImport::optional_tensor(std::string_view name) {
  const Argument* const argument = find(name);
  if (!argument) return kNone;
  if (const ValueId part = standing_in(name, 0); part != kNone) return part;
  if (argument->kind == "as_tensor") return named(argument->value["name"], name);
  if (argument->kind == "as_optional_tensor") {
    const Argument inner = Argument::of(argument->value);
    return inner.kind == "as_tensor" ? named(inner.value["name"], name) : kNone;
  }
  wrong_kind(name, *argument, "a tensor");
  return kNone;
}

bool NodeImport::is_tensor(std::string_view name) const {
  const Argument* const argument = find(name);
  return argument && (argument->kind == "as_tensor" || standing_in(name, 0) != kNone);
}

ValueId NodeImport::tensor(std::string_view name) {
  const ValueId found = optional_tensor(name);
  if (found == kNone) corrupt(fmt::format("has no tensor '{}'", name));
  return found;
}

std::vector<ValueId> NodeImport::tensors(std::string_view name) {
  const Argument* const argument = find(name);
  std::vector<ValueId> found;
  if (!argument) return found;
  if (argument->kind != "as_tensors" && argument->kind != "as_optional_tensors")
    return wrong_kind(name, *argument, "a list of tensors"), found;
  for (const Json& each : argument->value.items()) {
    const Json plain = argument->kind == "as_tensors" ? each : each["as_tensor"];
    const ValueId part = standing_in(name, found.size());
    found.push_back(part != kNone ? part : plain ? named(plain["name"], name) : kNone);
  }
  return found;
}

ValueId NodeImport::operand(std::string_view name, DType dtype) {
  if (is_tensor(name)) return b.cast(tensor(name), dtype);
  const Argument* const argument = find(name);
  if (argument && argument->kind == "as_sym_int") return b.cast(scalar(size_of(*argument)), dtype);
  return b.number(dtype, number(name, 0));
}

Size NodeImport::size_of(const Argument& argument) {
  if (argument.kind == "as_int") {
    if (const auto number = argument.value.integer()) return {number, kNone};
  } else if (argument.kind == "as_sym_int") {
    if (const auto number = argument.value["as_int"].integer()) return {number, kNone};
    const ValueId value = named(argument.value["as_name"], "a size");
    const auto known = b.known_integers(value);
    return {known && known->size() == 1 ? std::optional(known->front()) : std::nullopt, value};
  } else if (argument.kind == "as_tensor") {
    const ValueId value = named(argument.value["name"], "a size");
    return {std::nullopt, b.cast(b.reshape(value, {}), DType::kInt64)};
  }
  unsupported(fmt::format("a size of kind '{}'", argument.kind));
  return {0, kNone};
}

Size NodeImport::size(std::string_view name, int64_t fallback) {
  const Argument* const argument = find(name);
  return argument ? size_of(*argument) : Size{fallback, kNone};
}

std::vector<Size> NodeImport::sizes(std::string_view name) {
  const Argument* const argument = find(name);
  std::vector<Size> found;
  if (!argument) return found;
  if (argument->kind == "as_int" || argument->kind == "as_sym_int") return {size_of(*argument)};
  if (argument->kind != "as_ints" && argument->kind != "as_sym_ints") return wrong_kind(name, *argument, "a list of sizes"), found;
  for (const Json& each : argument->value.items()) found.push_back(size_of({argument->kind == "as_ints" ? "as_int" : "as_sym_int", each}));
  return found;
}

int64_t NodeImport::integer(std::string_view name, int64_t fallback) {
  const Argument* const argument = find(name);
  if (!argument) return fallback;
  if (argument->kind == "as_bool") return argument->value.boolean().value_or(false) ? 1 : 0;
  const auto number = size_of(*argument).number;
  if (!number) unsupported(fmt::format("argument '{}' is computed by the model", name));
  return number.value_or(fallback);
}

std::vector<int64_t> NodeImport::integers(std::string_view name, std::vector<int64_t> fallback) {
  if (!has(name)) return fallback;
  std::vector<int64_t> found;
  for (const Size& size : sizes(name)) {
    if (!size.number) unsupported(fmt::format("argument '{}' is computed by the model", name));
    found.push_back(size.number.value_or(0));
  }
  return found;
}

bool NodeImport::flag(std::string_view name, bool fallback) {
  const Argument* const argument = find(name);
  if (!argument) return fallback;
  const auto value = argument->value.boolean();
  if (!value) wrong_kind(name, *argument, "true or false");
  return value.value_or(fallback);
}

std::optional<double> NodeImport::optional_number(std::string_view name) {
  const Argument* const argument = find(name);
  if (!argument) return std::nullopt;
  if (const auto part = numbers_.find(name); part != numbers_.end()) return part->second;
  if (argument->kind == "as_bool") return argument->value.boolean().value_or(false) ? 1 : 0;
  if (argument->kind == "as_float" || argument->kind == "as_int") {
    if (const auto number = argument->value.number()) return number;
    const std::string word = argument->value.text().value_or("");  // what JSON has no number for
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (word == "Infinity" || word == "inf") return kInfinity;
    if (word == "-Infinity" || word == "-inf") return -kInfinity;
    if (word == "NaN" || word == "nan") return std::numeric_limits<double>::quiet_NaN();
  } else if (const auto number = argument->kind == "as_sym_int" ? size_of(*argument).number : std::nullopt) {
    return static_cast<double>(*number);
  }
  wrong_kind(name, *argument, "a number");
  return std::nullopt;
}

double NodeImport::number(std::string_view name, double fallback) { return optional_number(name).value_or(fallback); }

std::vector<double> NodeImport::numbers(std::string_view name) {
  const Argument* const argument = find(name);
  std::vector<double> found;
  if (!argument) return found;
  if (argument->kind != "as_floats" && argument->kind != "as_ints") return wrong_kind(name, *argument, "a list of numbers"), found;
  for (const Json& each : argument->value.items()) found.push_back(each.number().value_or(0));
  return found;
}

std::string NodeImport::text(std::string_view name, std::string_view fallback) {
  const Argument* const argument = find(name);
  if (!argument) return std::string(fallback);
  const auto value = argument->value.text();
  if (!value) wrong_kind(name, *argument, "a text");
  return value.value_or("");
}

std::optional<DType> NodeImport::dtype(std::string_view name) {
  const Argument* const argument = find(name);
  if (!argument) return std::nullopt;
  const auto number = argument->value.integer();
  const auto found = number ? dtype_of(*number) : std::nullopt;
  if (!found) unsupported(fmt::format("argument '{}' is torch's type {}", name, number.value_or(-1)));
  return found;
}

const TensorMeta* NodeImport::meta(size_t result) const {
  if (result >= node_.results.size()) return nullptr;
  const Json& value = node_.results[result].value;
  if (const auto name = value["name"].text()) return scope_.meta(*name);
  if (value.is_array() && value.size() > 0) return scope_.meta((*value.items().begin())["name"].text_or(""));
  return nullptr;
}

DType NodeImport::result_dtype() const {
  const TensorMeta* const declared = meta(0);
  return declared ? declared->dtype : DType::kFloat32;
}

std::vector<int64_t> NodeImport::known_result_sizes() {
  const TensorMeta* const declared = meta(0);
  std::vector<int64_t> sizes;
  for (const graph::Dim& size : declared ? declared->sizes : graph::Dims()) {
    if (!size.known()) unsupported("needs a result whose sizes are known");
    sizes.push_back(size.value().value_or(1));
  }
  return sizes;
}

size_t NodeImport::rank(ValueId x) {
  const auto found = b.rank(x);
  if (!found) unsupported("a tensor of unknown rank");
  return found.value_or(0);
}

int64_t NodeImport::axis(int64_t dim, size_t rank) {
  const auto count = static_cast<int64_t>(std::max<size_t>(rank, 1));
  if (dim < -count || dim >= count) return corrupt(fmt::format("axis {} of a tensor of rank {}", dim, rank)), 0;
  return dim < 0 ? dim + count : dim;
}

std::vector<int64_t> NodeImport::axes(std::string_view name, size_t rank) {
  std::vector<int64_t> found;
  for (const int64_t dim : integers(name)) found.push_back(axis(dim, rank));
  return found;
}

ValueId NodeImport::scalar(const Size& size) {
  return size.number ? b.constant(graph::make_constant(DType::kInt64, Shape{}, &*size.number)) : size.value;
}

/// The vector of one element that a size was squeezed from; kNone if it was not.
ValueId NodeImport::unsqueezed(ValueId size) const {
  const graph::NodeId producer = b.graph().producer(size);
  if (!b.graph().is(producer, Op::kSqueeze)) return kNone;
  const ValueId vector = b.graph().input(producer, 0);
  return b.rank(vector) == 1 ? vector : kNone;
}

ValueId NodeImport::shape_of(const std::vector<Size>& sizes) {
  const bool known = std::ranges::all_of(sizes, [](const Size& size) { return size.number.has_value(); });
  if (known) {
    std::vector<int64_t> numbers;
    numbers.reserve(sizes.size());
    for (const Size& size : sizes) numbers.push_back(*size.number);
    return b.integers(numbers);
  }
  std::vector<ValueId> parts;
  for (const Size& size : sizes) {
    const ValueId vector = size.number ? b.integers({*size.number}) : unsqueezed(size.value);
    parts.push_back(vector == kNone ? b.reshape(size.value, {1}) : vector);
  }
  return parts.size() == 1 ? parts[0] : b.add(Op::kConcat, parts, {{"axis", int64_t{0}}});
}

ValueId NodeImport::sized(ValueId x, size_t axis) {
  const auto at = static_cast<int64_t>(axis);
  return b.add(Op::kSqueeze, {sliced(b, b.add(Op::kShape, {x}), 0, at, at + 1)});
}

ValueId sliced(graph::Builder& b, ValueId x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  using List = std::vector<int64_t>;
  return b.add(Op::kSlice, {x}, {{"starts", List{begin}}, {"ends", List{end}}, {"axes", List{axis}}, {"steps", List{step}}});
}

}  // namespace serin::formats::torch
