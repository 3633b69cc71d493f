// along_axis.cc: ArgMax, Hardmax and CumSum. Where the axis is not the last, all columns go side by side, a row of them after the other.

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// Element (o, i, j) of a tensor is at (o * size + i) * inner + j.
struct Axis {
  int64_t outer, size, inner;
  Axis(const Shape& shape, size_t axis)
      : outer(product(shape, 0, axis)), size(shape[axis]), inner(product(shape, axis + 1, shape.rank())) {}
};

bool axis_fits(int64_t axis, const Shape& shape) { return axis >= 0 && axis < static_cast<int64_t>(shape.rank()); }

/// The first or the last place of `value`; a NaN is found where there is one.
int64_t find(const float* x, int64_t n, float value, bool last) {
  const bool nan = value != value;
  const auto is_it = [&](int64_t i) { return x[i] == value || (nan && x[i] != x[i]); };
  if (last) {
    for (int64_t i = n; i-- > 0;) {
      if (is_it(i)) return i;
    }
    return 0;
  }
  constexpr int64_t kPiece = 64;  // looked through without a branch for each element
  for (int64_t first = 0; first < n; first += kPiece) {
    const int64_t end = std::min(n, first + kPiece);
    int32_t found = 0;
    for (int64_t i = first; i < end; ++i) found |= (x[i] == value ? 1 : 0) | (nan && x[i] != x[i] ? 1 : 0);
    for (int64_t i = first; found && i < end; ++i) {
      if (is_it(i)) return i;
    }
  }
  return 0;
}

constexpr int64_t kColumns = 128;  // that are gone through together

/// One column by itself: the first or the last NaN is above all.
int64_t arg_column(const float* x, int64_t row, int64_t n, const ArgMax& op) {
  const auto better = [&op](float value, float best) {
    if (best != best) return op.last && value != value;
    if (value != value || (op.last && value == best)) return true;
    return op.min ? value < best : value > best;
  };
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    if (better(x[i * row], x[best * row])) best = i;
  }
  return best;
}

}  // namespace

Prepared arg_max(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const ArgMax op = std::get<ArgMax>(desc.op);
  if (desc.inputs.size() != 1 || desc.inputs[0].dtype != DType::kFloat32 || desc.outputs[0].dtype != DType::kInt64)
    return refuse(why, "f32 only");
  const Shape& shape = desc.inputs[0].shape;
  if (!axis_fits(op.axis, shape)) return refuse(why, "axis out of range");
  const auto along = static_cast<size_t>(op.axis);
  if (shape[along] >= 1 << 24) return refuse(why, "too many elements along the axis");
  return make_kernel([op, along, extreme = simd.reduce_rows(op.min ? ReduceFn::kMin : ReduceFn::kMax), columns_of = simd.arg_columns](
                         Stream& stream, Inputs in, Outputs out) -> Fault {
    const Axis axis(in[0].shape, along);
    if (axis.size == 0 && axis.outer * axis.inner != 0) return "ArgMax over axis " + std::to_string(op.axis) + " of size 0";
    const float* const x = in[0].as<const float>();
    int64_t* const y = out[0].as<int64_t>();
    if (axis.inner == 1) {
      parallel_rows(stream, axis.outer, axis.size, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          float value = 0;
          extreme(x + row * axis.size, &value, 1, axis.size);
          y[row] = find(x + row * axis.size, axis.size, value, op.last);
        }
      });
      return kOk;
    }
    const int64_t parts = (axis.inner + kColumns - 1) / kColumns;
    parallel_rows(stream, axis.outer * parts, axis.size * std::min(axis.inner, kColumns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t o = i / parts, first = i % parts * kColumns, columns = std::min(kColumns, axis.inner - first);
        const float* from = x + o * axis.size * axis.inner + first;
        int64_t* to = y + o * axis.inner + first;
        if (columns_of(from, axis.inner, axis.size, columns, op.min ? -1.f : 1.f, op.last, to)) continue;
        for (int64_t c = 0; c < columns; ++c) to[c] = arg_column(from + c, axis.inner, axis.size, op);
      }
    });
    return kOk;
  });
}

namespace {

template <class T>
using sum_of =
    std::conditional_t<std::is_floating_point_v<T>, double, std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<T>, int, T>>>;

/// One row from its start or its end; sums of floats in double.
template <class T>
void sum_row(const CumSum& op, const T* x, T* y, int64_t n) {
  sum_of<T> sum = 0;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = op.reverse ? n - 1 - step : step;
    const auto next = sum + static_cast<sum_of<T>>(x[i]);
    y[i] = static_cast<T>(op.exclusive ? sum : next);
    sum = next;
  }
}

/// Row i = row i - 1 + x, for `columns` columns that lie `row` apart; their sums are held beside, those of f32 as such.
template <class T>
void sum_columns(const CumSum& op, const T* x, T* y, int64_t row, int64_t n, int64_t columns) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, float, sum_of<T>>;
  std::array<Sum, kColumns> sums{};
  for (int64_t step = 0; step < n; ++step) {
    const int64_t at = (op.reverse ? n - 1 - step : step) * row;
    for (int64_t j = 0; j < columns; ++j) {
      const auto before = sums[static_cast<size_t>(j)], next = before + static_cast<Sum>(x[at + j]);
      y[at + j] = static_cast<T>(op.exclusive ? before : next);
      sums[static_cast<size_t>(j)] = next;
    }
  }
}

template <class T>
Prepared make_cum_sum(const CumSum& op) {
  return make_kernel([op](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Axis axis(in[0].shape, static_cast<size_t>(op.axis));
    const T* const x = in[0].as<const T>();
    T* const y = out[0].as<T>();
    const int64_t parts = (axis.inner + kColumns - 1) / kColumns;
    parallel_rows(stream, axis.outer * parts, axis.size * std::min(axis.inner, kColumns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % parts * kColumns, at = i / parts * axis.size * axis.inner + first;
        if (axis.inner == 1)
          sum_row(op, x + at, y + at, axis.size);
        else
          sum_columns(op, x + at, y + at, axis.inner, axis.size, std::min(kColumns, axis.inner - first));
      }
    });
    return kOk;
  });
}

/// The first largest element, as Hardmax has it: nothing is larger than a NaN that comes first, and no other NaN is larger than anything.
int64_t first_largest(const float* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    if (x[i] > x[best]) best = i;
  }
  return best;
}

}  // namespace

Prepared hardmax(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& [name, attributes] = std::get<Generic>(desc.op);
  if (name != "Hardmax") return refuse(why, "not Hardmax");
  if (desc.inputs.size() != 1 || !is_f32(desc, why)) return refuse(why, "f32 only");
  const auto last = static_cast<int64_t>(desc.inputs[0].shape.rank()) - 1;
  const int64_t axis = attributes.integer("axis", -1);
  if (last < 0 || (axis != -1 && axis != last)) return refuse(why, "the axis must be the last");
  return make_kernel([largest = simd.reduce_rows(ReduceFn::kMax)](Stream& stream, Inputs in, Outputs out) -> Fault {
    const int64_t n = in[0].shape.back(), rows = n == 0 ? 0 : in[0].elements() / n;
    parallel_rows(stream, rows, n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* x = in[0].as<const float>() + row * n;
        float* y = out[0].as<float>() + row * n;
        float value = 0;
        largest(x, &value, 1, n);
        std::fill_n(y, n, 0.f);
        y[value == value ? find(x, n, value, false) : first_largest(x, n)] = 1;
      }
    });
    return kOk;
  });
}

Prepared cum_sum(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const CumSum op = std::get<CumSum>(desc.op);
  if (desc.inputs.size() != 1 || desc.inputs[0].dtype != desc.outputs[0].dtype) return refuse(why, "input and output differ in dtype");
  if (!axis_fits(op.axis, desc.inputs[0].shape)) return refuse(why, "axis out of range");
  switch (desc.inputs[0].dtype) {
    case DType::kFloat32: return make_cum_sum<float>(op);
    case DType::kFloat64: return make_cum_sum<double>(op);
    case DType::kInt32: return make_cum_sum<int32_t>(op);
    case DType::kInt64: return make_cum_sum<int64_t>(op);
    default: return refuse(why, "no kernel for this dtype");
  }
}

}  // namespace serin::kernels::cpu
