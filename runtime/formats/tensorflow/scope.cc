// scope.cc: conversions between the two orders of axes.

#include "runtime/formats/tensorflow/scope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace serin::formats::tf {
namespace {

using graph::ConstantPtr;
using graph::Dim;
using graph::Dims;

std::vector<int64_t> order_to_first(size_t rank) {
  std::vector<int64_t> order = {0, static_cast<int64_t>(rank) - 1};
  for (size_t axis = 1; axis + 1 < rank; ++axis) order.push_back(static_cast<int64_t>(axis));
  return order;
}

std::vector<int64_t> order_to_last(size_t rank) {
  std::vector<int64_t> order = {0};
  for (size_t axis = 2; axis < rank; ++axis) order.push_back(static_cast<int64_t>(axis));
  order.push_back(1);
  return order;
}

/// Moving axes of size 1 leaves the elements where they are: then the new shape is enough.
std::optional<std::vector<int64_t>> shape_if_order_stays(const Dims& dims, const std::vector<int64_t>& order) {
  std::vector<int64_t> long_axes, shape;
  size_t unknown = 0;
  for (const int64_t axis : order) {
    const std::optional<int64_t> size = dims[static_cast<size_t>(axis)].value();
    if (size != 1) long_axes.push_back(axis);
    unknown += size ? 0 : 1;
    shape.push_back(size.value_or(-1));
  }
  if (!std::ranges::is_sorted(long_axes) || unknown > 1) return std::nullopt;
  return shape;
}

void permute_bytes(const std::byte* from, const Shape& shape, const std::vector<int64_t>& order, size_t element, std::byte* to) {
  const size_t rank = shape.rank();
  std::vector<size_t> strides(rank, element), index(rank, 0);
  for (size_t axis = rank - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * static_cast<size_t>(shape[axis]);
  for (int64_t count = shape.elements(); count > 0; --count) {
    size_t at = 0;
    for (size_t axis = 0; axis < rank; ++axis) at += index[axis] * strides[static_cast<size_t>(order[axis])];
    std::memcpy(to, from + at, element);
    to += element;
    for (size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < static_cast<size_t>(shape[static_cast<size_t>(order[axis])])) break;
      index[axis] = 0;
    }
  }
}

}  // namespace

ValueId Scope::plain(Value& value) {
  if (value.plain != kNone || value.first == kNone) return value.plain;
  const Dims dims = *builder_.dims(value.first);
  const std::vector<int64_t> order = order_to_last(dims.size());
  const auto shape = shape_if_order_stays(dims, order);
  value.plain = shape ? builder_.reshape(value.first, *shape) : builder_.transpose(value.first, order);
  return value.plain;
}

ValueId Scope::first(Value& value) {
  if (value.first != kNone || value.plain == kNone || !builder_.dims(value.plain) || builder_.dims(value.plain)->size() < 3)
    return value.first;
  const Dims dims = *builder_.dims(value.plain);
  const std::vector<int64_t> order = order_to_first(dims.size());
  const auto shape = shape_if_order_stays(dims, order);
  if (graph_.constant(value.plain))
    value.first = permuted(value.plain, order);
  else
    value.first = shape ? builder_.reshape(value.plain, *shape) : builder_.transpose(value.plain, order);
  return value.first;
}

std::optional<Dims> Scope::dims(const Value& value) const {
  if (value.plain != kNone) return builder_.dims(value.plain);
  const auto& first = builder_.dims(value.first);
  if (value.first == kNone || !first) return std::nullopt;
  Dims dims = *first;
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return dims;
}

std::optional<size_t> Scope::rank(const Value& value) const {
  const auto known = dims(value);
  return known ? std::optional(known->size()) : std::nullopt;
}

bool Scope::foldable(ValueId id) {
  if (id == kNone) return false;
  foldable_.resize(graph_.value_capacity(), false);
  for (; static_cast<size_t>(examined_) < graph_.node_capacity(); ++examined_) {
    const graph::Node& node = graph_.node(examined_);
    const auto folds = [&](ValueId input) { return input == kNone || graph_.constant(input) || foldable_[static_cast<size_t>(input)]; };
    const bool all = node.bodies.empty() && !node.inputs.empty() && std::ranges::all_of(node.inputs, folds);
    for (const ValueId output : node.outputs)
      if (output != kNone) foldable_[static_cast<size_t>(output)] = all;
  }
  return graph_.constant(id) || foldable_[static_cast<size_t>(id)];
}

ValueId Scope::permuted(ValueId id, const std::vector<int64_t>& order) {
  const ConstantPtr source = graph_.constant(id);
  if (!source || source->dtype == DType::kString || source->shape.rank() < 2) return builder_.transpose(id, order);
  const std::string key = fmt::format("order {} [{}]", source->id, fmt::join(order, ","));
  ConstantPtr made = shared && shared->contains(key) ? shared->at(key) : nullptr;
  if (!made) {
    Shape shape;
    for (const int64_t axis : order) shape.push_back(source->shape[static_cast<size_t>(axis)]);
    made = graph::make_constant(source->dtype, shape, [source, order](std::span<std::byte> bytes) -> Status {
      permute_bytes(source->data().get(), source->shape, order, dtype_size(source->dtype), bytes.data());
      return {};
    });
    if (shared) shared->emplace(key, made);
  }
  return builder_.constant(graph_.value(id).name, std::move(made));
}

ValueId Scope::reshaped(ValueId id, const Shape& shape) {
  const ConstantPtr source = graph_.constant(id);
  ConstantPtr made;
  if (source->resident || source->elements() == 0)
    made = graph::make_constant(source->dtype, shape, source->resident);
  else
    made = graph::make_constant(source->dtype, shape, source->recipe);
  return builder_.constant(graph_.value(id).name, std::move(made));
}

}  // namespace serin::formats::tf
