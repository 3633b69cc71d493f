// node_import.cc: operands and attributes, each checked where it is used.

#include "runtime/formats/tensorflow/node_import.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/tensorflow/tensor.h"

namespace serin::formats::tf {

ValueId NodeImport::in(size_t i) {
  const ValueId id = i < inputs_.size() ? scope_.plain(*inputs_[i]) : kNone;
  if (id == kNone) corrupt(fmt::format("operand {} is no tensor", i));
  return id;
}

ValueId NodeImport::first(size_t i) {
  const ValueId id = i < inputs_.size() ? scope_.first(*inputs_[i]) : kNone;
  if (id == kNone) unsupported(fmt::format("operand {} is no tensor of a known rank of at least 3", i));
  return id;
}

ValueId NodeImport::any(size_t i) {
  const bool channels_first = prefers_first(i);
  if (i < was_first_.size()) was_first_[i] = channels_first;
  return channels_first ? first(i) : in(i);
}

void NodeImport::out_first(ValueId id) {
  outputs_.push_back(std::make_shared<Value>(Value{.plain = kNone, .first = id, .resource = nullptr, .list = nullptr}));
}

std::optional<std::vector<int64_t>> NodeImport::known(size_t i) {
  const ValueId id = in(i);
  if (id == kNone) return std::nullopt;
  if (const auto known = builder().known_integers(id)) return known;
  const graph::ConstantPtr constant = scope_.graph().constant(id);
  return constant ? graph::integers_of(*constant) : std::nullopt;
}

ValueId NodeImport::i64(size_t i) {
  const ValueId id = in(i);
  if (id == kNone) return id;
  const auto known_now = known(i);
  if (known_now && builder().rank(id) == 1) return builder().integers(*known_now);
  return builder().cast(id, DType::kInt64);
}

std::vector<int64_t> NodeImport::needed(size_t i, std::string_view what) {
  if (auto numbers = known(i)) return *numbers;
  unsupported(fmt::format("the {} depend on the data", what));
  return {};
}

int64_t NodeImport::axis(int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis >= -signed_rank && axis < signed_rank) return axis < 0 ? axis + signed_rank : axis;
  corrupt(fmt::format("axis {} of a tensor of rank {}", axis, rank));
  return 0;
}

std::vector<int64_t> NodeImport::axes(size_t i, size_t rank) {
  std::vector<int64_t> axes = needed(i, "axes");
  for (int64_t& each : axes) each = axis(each, rank);
  return axes;
}

const Attr* NodeImport::attr(std::string_view key) const {
  const auto found = def_.attrs.find(key);
  return found == def_.attrs.end() ? nullptr : &found->second;
}

int64_t NodeImport::integer(std::string_view key, int64_t fallback) const {
  const Attr* const found = attr(key);
  return found ? found->integer.value_or(fallback) : fallback;
}

double NodeImport::number(std::string_view key, double fallback) const {
  const Attr* const found = attr(key);
  return found && found->number ? double{*found->number} : fallback;
}

std::string_view NodeImport::text(std::string_view key, std::string_view fallback) const {
  const Attr* const found = attr(key);
  return found ? found->text.value_or(fallback) : fallback;
}

std::vector<int64_t> NodeImport::integers(std::string_view key) const {
  std::vector<int64_t> numbers;
  if (const Attr* const found = attr(key))
    for (const Attr& each : found->list) numbers.push_back(each.integer.value_or(0));
  return numbers;
}

DType NodeImport::dtype_attr(std::string_view key, DType fallback) {
  const Attr* const found = attr(key);
  if (!found || !found->integer) return fallback;
  if (const auto dtype = dtype_of(*found->integer)) return *dtype;
  unsupported(fmt::format("dtype {}", *found->integer));
  return DType::kUndefined;
}

}  // namespace serin::formats::tf
