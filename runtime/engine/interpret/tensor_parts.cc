// tensor_parts.cc: splits and joins tensors. A part along an axis is `outer` runs of elements that lie together.

#include "runtime/engine/interpret/tensor_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/indexing.h"

namespace serin::engine {

namespace {

using graph::ConstantPtr;
using kernels::product;

/// Copies `count` elements.
void move_elements(const graph::Constant& from, int64_t first, graph::Constant& to, std::byte* to_bytes, int64_t at, int64_t count) {
  if (from.dtype == DType::kString) {
    std::copy_n(from.strings.begin() + first, count, to.strings.begin() + at);
    return;
  }
  const size_t size = dtype_size(from.dtype);
  if (count != 0)
    std::memcpy(to_bytes + static_cast<size_t>(at) * size, from.data().get() + static_cast<size_t>(first) * size,
                static_cast<size_t>(count) * size);
}

Result<size_t> resolved_axis(int64_t axis, size_t rank) {
  const auto limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit) return Error{Code::kInvalidArgument, fmt::format("axis {} is out of range for rank {}", axis, rank)};
  return static_cast<size_t>(axis < 0 ? axis + limit : axis);
}

}  // namespace

ConstantPtr reshaped(const ConstantPtr& tensor, const Shape& shape) {
  auto other = std::make_shared<graph::Constant>(*tensor);
  other->shape = shape;
  other->id = 0;
  return other;
}

ConstantPtr part(const ConstantPtr& tensor, size_t axis, int64_t begin, int64_t count) {
  Shape shape = tensor->shape;
  const int64_t size = shape[axis], outer = product(shape, 0, axis), inner = product(shape, axis + 1, shape.rank());
  shape[axis] = count;
  if (outer == 1 && tensor->dtype != DType::kString) {
    auto view = std::make_shared<graph::Constant>();
    view->dtype = tensor->dtype;
    view->shape = shape;
    const auto data = tensor->data();
    view->resident = std::shared_ptr<const std::byte>(data, data.get() + static_cast<size_t>(begin * inner) * dtype_size(tensor->dtype));
    return view;
  }
  const FreshTensor fresh = fresh_tensor(tensor->dtype, shape);
  for (int64_t o = 0; o < outer; ++o)
    move_elements(*tensor, (o * size + begin) * inner, *fresh.tensor, fresh.view.as<std::byte>(), o * count * inner, count * inner);
  return fresh.tensor;
}

ConstantPtr slice(const ConstantPtr& tensor, size_t axis, int64_t index) {
  Shape shape;
  for (size_t i = 0; i < tensor->shape.rank(); ++i) {
    if (i != axis) shape.push_back(tensor->shape[i]);
  }
  const ConstantPtr one = part(tensor, axis, index, 1);
  return reshaped(one, shape);
}

Result<ConstantPtr> concatenated(std::span<const ConstantPtr> parts, int64_t given_axis, size_t max_bytes) {
  if (parts.empty()) return Error{Code::kInvalidArgument, "there is nothing to concatenate"};
  Shape shape = parts[0]->shape;
  SERIN_TRY(const size_t axis, resolved_axis(given_axis, shape.rank()));
  const DType dtype = parts[0]->dtype;
  shape[axis] = 0;
  for (const ConstantPtr& each : parts) {
    Shape other = each->shape;
    const bool same_rank = other.rank() == shape.rank();
    if (same_rank) other[axis] = shape[axis];
    if (!same_rank || other != shape || each->dtype != dtype) {
      return Error{Code::kInvalidArgument, fmt::format("{}{} and {}{} cannot be concatenated along axis {}", dtype_name(dtype),
                                                       parts[0]->shape.str(), dtype_name(each->dtype), each->shape.str(), axis)};
    }
    shape[axis] += each->shape[axis];
  }
  const size_t element = std::max(dtype_size(dtype), dtype == DType::kString ? sizeof(std::string) : size_t{1});
  const auto elements = shape.checked_elements();
  if (!elements || static_cast<uint64_t>(*elements) > max_bytes / element)
    return Error{Code::kTooLarge, fmt::format("{}{} is more than the limit of {} bytes", dtype_name(dtype), shape.str(), max_bytes)};

  const FreshTensor fresh = fresh_tensor(dtype, shape);
  const int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, shape.rank()), row = shape[axis] * inner;
  int64_t before = 0;
  for (const ConstantPtr& each : parts) {
    const int64_t run = each->shape[axis] * inner;
    for (int64_t o = 0; o < outer; ++o) move_elements(*each, o * run, *fresh.tensor, fresh.view.as<std::byte>(), o * row + before, run);
    before += run;
  }
  return fresh.tensor;
}

Result<ConstantPtr> stacked(std::span<const ConstantPtr> parts, int64_t given_axis, size_t max_bytes) {
  if (parts.empty()) return Error{Code::kInvalidArgument, "there is nothing to stack"};
  if (!Shape::fits(parts[0]->shape.rank() + 1)) return Error{Code::kInvalidArgument, "the result would have too many dimensions"};
  SERIN_TRY(const size_t axis, resolved_axis(given_axis, parts[0]->shape.rank() + 1));
  std::vector<ConstantPtr> widened;
  for (const ConstantPtr& each : parts) {
    if (each->shape != parts[0]->shape)
      return Error{Code::kInvalidArgument, fmt::format("{} and {} cannot be stacked", parts[0]->shape.str(), each->shape.str())};
    Shape shape;
    for (size_t i = 0; i <= each->shape.rank(); ++i) {
      if (i == axis) shape.push_back(1);
      if (i < each->shape.rank()) shape.push_back(each->shape[i]);
    }
    widened.push_back(reshaped(each, shape));
  }
  return concatenated(widened, static_cast<int64_t>(axis), max_bytes);
}

size_t bytes_of(const Value& value) {
  size_t bytes = 0;
  if (value.tensor) {
    bytes = value.tensor->bytes();
    for (const std::string& text : value.tensor->strings) bytes += sizeof(text) + text.size();
  }
  for (const Value& element : value.elements) bytes += bytes_of(element);
  return bytes;
}

}  // namespace serin::engine
