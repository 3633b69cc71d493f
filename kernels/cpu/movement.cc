// movement.cc: StridedCopy (transpose, slice, expand) for every dtype.
//
// The axes are collapsed first, so that most copies are one of four forms along the innermost axis of y: dense (memcpy), repeated (fill), a
// transpose (some other axis is dense in x: both are walked in blocks, so that neither side misses the cache on every element; elements of two and
// four bytes change places in registers), or plain strided.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/image.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kTile = 16;  // 16 x 16 elements: at most one cache line of each row for 4-byte elements

/// y[i * y_row + j] = x[i + j * x_row] for i < rows, j < columns.
template <class T>
void transpose(const ImageLoops& loops, const T* x, int64_t x_row, T* y, int64_t y_row, int64_t rows, int64_t columns) {
  if constexpr (sizeof(T) == sizeof(float))
    return loops.transpose(reinterpret_cast<const float*>(x), x_row, reinterpret_cast<float*>(y), y_row, rows, columns);
  if constexpr (sizeof(T) == sizeof(int16_t))
    return loops.transpose_half(reinterpret_cast<const int16_t*>(x), x_row, reinterpret_cast<int16_t*>(y), y_row, rows, columns);
  for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
    for (int64_t j0 = 0; j0 < columns; j0 += kTile) {
      const int64_t i1 = std::min(rows, i0 + kTile), j1 = std::min(columns, j0 + kTile);
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j) y[i * y_row + j] = x[i + j * x_row];
      }
    }
  }
}

template <class T>
void copy_run(const T* x, int64_t stride, T* y, int64_t n) {
  if (stride == 1) {
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
  } else if (stride == 0) {
    std::fill_n(y, n, *x);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
  }
}

template <class T>
void copy(const ImageLoops& loops, const Stream& stream, const T* x, const Strides& x_strides, T* y, const Shape& shape) {
  if (shape.elements() == 0) return;
  const Collapsed<1> space = collapse<1>(shape, {x_strides});
  const Strides& strides = space.strides[0];
  const size_t last = space.shape.rank() - 1;
  Shape outer = space.shape;
  const int64_t n = outer[last];
  outer[last] = 1;
  const Strides y_strides = row_major_strides(space.shape);

  size_t dense = last;  // an axis other than the last along which x is dense
  for (size_t axis = 0; axis < last; ++axis) {
    if (strides[axis] == 1) dense = axis;
  }
  if (strides[last] > 1 && dense != last) {
    const int64_t rows = outer[dense];
    outer[dense] = 1;
    const int64_t matrices = outer.elements();
    // A matrix that is all there is is cut into bands of rows.
    const int64_t bands = matrices == 1 ? std::min<int64_t>(rows / 16, 8) : 1, band = bands > 1 ? (rows / bands + 15) / 16 * 16 : rows;
    parallel_rows(stream, matrices * std::max<int64_t>(bands, 1), band * n, [&](int64_t begin, int64_t end) {
      if (bands > 1) {
        const int64_t first = std::min(rows, begin * band), count = end == bands ? rows - first : std::min(rows, end * band) - first;
        return transpose(loops, x + first, strides[last], y + first * y_strides[dense], y_strides[dense], count, n);
      }
      for_each_in<2>(outer, {strides, y_strides}, begin, end,
                     [&](int64_t, const auto& at) { transpose(loops, x + at[0], strides[last], y + at[1], y_strides[dense], rows, n); });
    });
    return;
  }
  parallel_rows(stream, outer.elements(), n, [&](int64_t begin, int64_t end) {
    for_each_in<1>(outer, {strides}, begin, end, [&](int64_t i, const auto& at) { copy_run(x + at[0], strides[last], y + i * n, n); });
  });
}

template <class T>
Prepared make_copy(const ImageLoops& loops, int64_t offset, const Strides& strides) {
  return make_kernel([&loops, offset, strides](Stream& stream, Inputs in, Outputs out) -> Fault {
    copy(loops, stream, in[0].as<const T>() + offset, strides, out[0].as<T>(), out[0].shape);
    return kOk;
  });
}

}  // namespace

Prepared strided_copy(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const StridedCopy& op = std::get<StridedCopy>(desc.op);
  if (op.strides.size() != desc.outputs[0].shape.rank() || desc.inputs[0].dtype != desc.outputs[0].dtype) {
    return refuse(why, "strides or dtypes do not match");
  }
  Strides strides{};
  std::copy(op.strides.begin(), op.strides.end(), strides.begin());
  const ImageLoops& loops = *simd.image;
  switch (dtype_size(desc.inputs[0].dtype)) {
    case 1: return make_copy<uint8_t>(loops, op.offset, strides);
    case 2: return make_copy<uint16_t>(loops, op.offset, strides);
    case 4: return make_copy<uint32_t>(loops, op.offset, strides);
    case 8: return make_copy<uint64_t>(loops, op.offset, strides);
    default: return refuse(why, "no kernel for this dtype");
  }
}

}  // namespace serin::kernels::cpu
