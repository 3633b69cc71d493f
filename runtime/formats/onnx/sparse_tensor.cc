// sparse_tensor.cc: sparse tensors become dense ones at load, so that nothing behind the reader knows of them.
//
// A few bytes can claim a tensor of any size, which is why what they unfold to is bounded for the whole model. Indices are those of the linear
// order ([n]) or one for each axis ([n, rank]), each once and ascending, as ONNX demands.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/formats/onnx/tensor.h"

namespace serin::formats::onnx {
namespace {

Error corrupt_sparse(std::string what) { return Error{Code::kCorrupt, "is sparse and " + std::move(what)}; }

/// The linear index of entry `i`, nothing where it lies outside of `shape`.
std::optional<int64_t> position(const graph::Constant& indices, const Shape& shape, size_t i) {
  const auto numbers = indices.span<int64_t>();
  if (indices.shape.rank() == 1) return numbers[i] >= 0 && numbers[i] < shape.elements() ? std::optional(numbers[i]) : std::nullopt;
  int64_t linear = 0;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    const int64_t index = numbers[i * shape.rank() + axis];
    if (index < 0 || index >= shape[axis]) return std::nullopt;
    linear = linear * shape[axis] + index;
  }
  return linear;
}

}  // namespace

Result<graph::ConstantPtr> TensorReader::read(const SparseTensorProto& tensor) {
  SERIN_TRY(const graph::ConstantPtr values, read(tensor.values));
  SERIN_TRY(const graph::ConstantPtr indices, read(tensor.indices));
  SERIN_TRY(const Shape shape, shape_from(tensor.dims));
  const size_t size = dtype_size(values->dtype);
  if (size == 0) return Error{Code::kUnsupported, "is sparse and contains strings"};
  if (values->shape.rank() != 1) return corrupt_sparse(fmt::format("has values of shape {}, a list is needed", values->shape.str()));
  const int64_t count = values->elements();
  const bool linear = indices->shape == Shape{count};
  if (indices->dtype != DType::kInt64 || (!linear && !(indices->shape == Shape{count, static_cast<int64_t>(shape.rank())})))
    return corrupt_sparse(
        fmt::format("has indices {}{} for {} values of rank {}", dtype_name(indices->dtype), indices->shape.str(), count, shape.rank()));

  const auto elements = static_cast<size_t>(shape.elements());
  if (elements > (sparse_limit_ - sparse_bytes_) / size)
    return Error{Code::kTooLarge,
                 fmt::format("is sparse and would unfold to {} elements; the limit for a model is {} bytes", elements, sparse_limit_)};
  sparse_bytes_ += elements * size;

  std::byte* memory = nullptr;
  auto dense = graph::make_mutable_constant(values->dtype, shape, &memory);
  int64_t before = -1;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto at = position(*indices, shape, i);
    if (!at || *at <= before) return corrupt_sparse(fmt::format("index {} is {}", i, at ? "not behind the one before it" : "out of range"));
    std::memcpy(memory + static_cast<size_t>(*at) * size, values->data().get() + i * size, size);
    before = *at;
  }
  return graph::ConstantPtr(dense);
}

}  // namespace serin::formats::onnx
