// axes.h: Parts that kernels along an axis share: the axis with the sizes around it, and indices that come as operands.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/float16.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::ref {

/// An axis of a tensor, with the sizes before and after it: element (o, i, j) is at (o * size + i) * inner + j.
struct AxisView {
  int64_t outer, size, inner;
  AxisView(const Shape& shape, size_t axis)
      : outer(product(shape, 0, axis)), size(shape[axis]), inner(product(shape, axis + 1, shape.rank())) {}
  SERIN_HD int64_t at(int64_t o, int64_t i, int64_t j) const { return (o * size + i) * inner + j; }
};

/// An axis attribute as an index; -1 if it is out of range.
inline int64_t resolve_axis(int64_t axis, size_t rank) {
  const auto limit = static_cast<int64_t>(rank);
  if (axis < 0) axis += limit;
  return axis >= 0 && axis < limit ? axis : -1;
}

inline bool is_index_dtype(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

/// Element i of an i32 or i64 operand.
inline int64_t index_at(const TensorView& indices, int64_t i) {
  return indices.dtype == DType::kInt32 ? indices.as<const int32_t>()[i] : indices.as<const int64_t>()[i];
}

/// An index counted from the end if negative; -1 if it is out of range.
inline int64_t resolve_index(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index < size ? std::max<int64_t>(index, -1) : -1;
}

inline Fault out_of_range(int64_t index, size_t axis, int64_t size) {
  return "index " + std::to_string(index) + " is out of range for axis " + std::to_string(axis) + " of size " + std::to_string(size);
}

}  // namespace serin::kernels::ref
