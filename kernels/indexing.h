// indexing.h: Strides, broadcasting, and iterating over several operands of one shape at once.
//
//   for_each<2>(y.shape, {broadcast_strides(a.shape, y.shape), broadcast_strides(b.shape, y.shape)},
//               [&](int64_t i, const auto& at) { y[i] = a[at[0]] + b[at[1]]; });
//
// Strides and offsets are in elements. Nothing here allocates.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/tensor.h"

namespace serin::kernels {

using Strides = std::array<int64_t, Shape::kMaxRank>;

inline Strides row_major_strides(const Shape& shape) {
  Strides strides{};
  int64_t step = 1;
  for (size_t axis = shape.rank(); axis-- > 0; step *= shape[axis]) strides[axis] = step;
  return strides;
}

/// Strides of an operand of shape `from` broadcast to shape `to` (NumPy's rule: aligned to the right, dimensions of 1 are repeated).
inline Strides broadcast_strides(const Shape& from, const Shape& to) {
  Strides strides{};
  int64_t step = 1;
  const size_t missing = to.rank() - from.rank();
  for (size_t axis = from.rank(); axis-- > 0; step *= from[axis]) strides[axis + missing] = from[axis] == 1 ? 0 : step;
  return strides;
}

inline bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  const size_t missing = to.rank() - from.rank();
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1 && from[axis] != to[axis + missing]) return false;
  }
  return true;
}

/// Product of the dimensions [begin, end).
inline int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t axis = begin; axis < end; ++axis) result *= shape[axis];
  return result;
}

/// Calls f(i, offsets) for each element i in [begin, end) of `shape` in row-major order, with the offset of each operand.
template <size_t kOperands, class F>
void for_each_in(const Shape& shape, const std::array<Strides, kOperands>& strides, int64_t begin, int64_t end, F&& f) {
  std::array<int64_t, kOperands> offset{};
  Strides index{};
  int64_t rest = begin;
  for (size_t axis = shape.rank(); rest > 0 && axis-- > 0; rest /= shape[axis]) {
    index[axis] = rest % shape[axis];
    for (size_t k = 0; k < kOperands; ++k) offset[k] += strides[k][axis] * index[axis];
  }
  for (int64_t i = begin; i < end; ++i) {
    f(i, offset);
    for (size_t axis = shape.rank(); axis-- > 0;) {
      for (size_t k = 0; k < kOperands; ++k) offset[k] += strides[k][axis];
      if (++index[axis] < shape[axis]) break;
      for (size_t k = 0; k < kOperands; ++k) offset[k] -= strides[k][axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

template <size_t kOperands, class F>
void for_each(const Shape& shape, const std::array<Strides, kOperands>& strides, F&& f) {
  for_each_in(shape, strides, 0, shape.elements(), f);
}

/// An iteration space with as few axes as the operands' strides allow. Axes of 1 are dropped; adjacent axes with even steps in every
/// operand become one. [2,3,4] of dense operands becomes [24]; with a [3,1] operand broadcast over it becomes [2,3,4].
template <size_t kOperands>
struct Collapsed {
  Shape shape;
  std::array<Strides, kOperands> strides{};
};

template <size_t kOperands>
Collapsed<kOperands> collapse(const Shape& shape, const std::array<Strides, kOperands>& strides) {
  Collapsed<kOperands> result;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    const size_t last = result.shape.rank() - 1;  // meaningful only if there is one
    bool merge = result.shape.rank() > 0;
    for (size_t k = 0; merge && k < kOperands; ++k) merge = result.strides[k][last] == strides[k][axis] * shape[axis];
    if (!merge) result.shape.push_back(1);
    const size_t at = result.shape.rank() - 1;
    result.shape[at] *= shape[axis];
    for (size_t k = 0; k < kOperands; ++k) result.strides[k][at] = strides[k][axis];
  }
  if (result.shape.rank() == 0) result.shape.push_back(1);
  return result;
}

}  // namespace serin::kernels
