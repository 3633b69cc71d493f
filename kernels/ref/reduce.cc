// reduce.cc: Reduce over any axes, and the two that work along one axis: ArgMax and CumSum.
//
// A reduction over no elements gives its neutral element: 0, 1, -Inf (the lowest integer) for Max, +Inf for Min; a Mean of nothing is NaN
// (0 for integers). NaN in Max and Min propagates, and ArgMax takes the first NaN for the largest, as NumPy does.

#include <limits>

#include "kernels/indexing.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

namespace {

/// The value of a reduction over nothing.
template <class S>
S neutral(ReduceFn fn) {
  using Limits = std::numeric_limits<S>;
  switch (fn) {
    case ReduceFn::kProd: return S(1);
    case ReduceFn::kMax: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ReduceFn::kMin: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    default: return S(0);
  }
}

template <class S>
S accumulate(ReduceFn fn, S sum, S x) {
  switch (fn) {
    case ReduceFn::kSum:
    case ReduceFn::kMean: return kernels::binary(BinaryFn::kAdd, sum, x);
    case ReduceFn::kMax: return maximum(x, sum);
    case ReduceFn::kMin: return minimum(x, sum);
    case ReduceFn::kProd: return kernels::binary(BinaryFn::kMul, sum, x);
    case ReduceFn::kL1: return kernels::binary(BinaryFn::kAdd, sum, kernels::unary(UnaryFn::kAbs, x, 0.f, 0.f));
    case ReduceFn::kL2:
    case ReduceFn::kSumSquare: return kernels::binary(BinaryFn::kAdd, sum, kernels::binary(BinaryFn::kMul, x, x));
  }
  return sum;
}

template <class S>
S finish(ReduceFn fn, S sum, int64_t count) {
  if (fn == ReduceFn::kMean) return divide(sum, static_cast<S>(count));
  if (fn == ReduceFn::kL2) return kernels::cast<S>(std::sqrt(static_cast<double>(sum)));
  return sum;
}

/// Max and Min of an empty set must be the element type's own extreme, not that of the wider sum.
template <class T>
T narrow_extreme(ReduceFn fn, sum_t<T> x, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    if (count == 0 && fn == ReduceFn::kMax) return std::numeric_limits<T>::lowest();
    if (count == 0 && fn == ReduceFn::kMin) return std::numeric_limits<T>::max();
  }
  return narrow<T>(x);
}

template <class T>
Fault run_reduce(const Reduce& op, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  Shape kept = x, reduced = x;  // the reduced axes as 1; the kept ones as 1
  for (size_t axis = 0; axis < x.rank(); ++axis) {
    const bool is_reduced = std::find(op.axes.begin(), op.axes.end(), static_cast<int64_t>(axis)) != op.axes.end();
    (is_reduced ? kept : reduced)[axis] = 1;
  }
  const Strides strides = row_major_strides(x);
  const int64_t count = reduced.elements();
  for_each<1>(kept, {strides}, [&](int64_t i, const auto& start) {
    sum_t<T> sum = neutral<sum_t<T>>(op.fn);
    const T* first = in[0].as<const T>() + start[0];
    for_each<1>(reduced, {strides}, [&](int64_t, const auto& at) { sum = accumulate(op.fn, sum, widen(first[at[0]])); });
    out[0].as<T>()[i] = narrow_extreme<T>(op.fn, finish(op.fn, sum, count), count);
  });
  return kOk;
}

/// An axis and what lies before and after it: element (o, i, j) of the input is at (o * size + i) * inner + j.
struct Axis {
  int64_t outer, size, inner;
  Axis(const Shape& shape, int64_t axis)
      : outer(product(shape, 0, static_cast<size_t>(axis))),
        size(shape[static_cast<size_t>(axis)]),
        inner(product(shape, static_cast<size_t>(axis) + 1, shape.rank())) {}
};

template <class T>
Fault run_arg_max(const ArgMax& op, Inputs in, Outputs out) {
  const Axis axis(in[0].shape, op.axis);
  if (axis.size == 0 && axis.outer * axis.inner != 0) return "ArgMax over axis " + std::to_string(op.axis) + " of size 0";
  const auto better = [&op](auto x, auto best) {
    if (x != x || best != best) return best == best || (op.last && x != x);
    if (op.last && x == best) return true;
    return op.min ? x < best : x > best;
  };
  for (int64_t o = 0; o < axis.outer; ++o) {
    for (int64_t j = 0; j < axis.inner; ++j) {
      const T* x = in[0].as<const T>() + o * axis.size * axis.inner + j;
      int64_t best = 0;
      for (int64_t i = 1; i < axis.size; ++i) {
        if (better(load(x[i * axis.inner]), load(x[best * axis.inner]))) best = i;
      }
      out[0].as<int64_t>()[o * axis.inner + j] = best;
    }
  }
  return kOk;
}

template <class T>
Fault run_cum_sum(const CumSum& op, Inputs in, Outputs out) {
  const Axis axis(in[0].shape, op.axis);
  for (int64_t o = 0; o < axis.outer; ++o) {
    for (int64_t j = 0; j < axis.inner; ++j) {
      sum_t<T> sum = 0;
      for (int64_t step = 0; step < axis.size; ++step) {
        const int64_t i = op.reverse ? axis.size - 1 - step : step;
        const int64_t at = (o * axis.size + i) * axis.inner + j;
        const sum_t<T> next = kernels::binary(BinaryFn::kAdd, sum, widen(in[0].as<const T>()[at]));
        out[0].as<T>()[at] = narrow<T>(op.exclusive ? sum : next);
        sum = next;
      }
    }
  }
  return kOk;
}

bool axis_fits(int64_t axis, const Shape& shape) { return axis >= 0 && axis < static_cast<int64_t>(shape.rank()); }

}  // namespace

Prepared reduce(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  if (!one_dtype(desc)) return refuse(why, "input and output differ in dtype");
  const Reduce& op = std::get<Reduce>(desc.op);
  if (desc.inputs[0].dtype == DType::kBool && op.fn != ReduceFn::kMax && op.fn != ReduceFn::kMin) return refuse_dtype(why, DType::kBool);
  return visit_dtype(desc.inputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>) {
      return refuse_dtype(why, desc.inputs[0].dtype);
    } else {
      return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_reduce<T>(op, in, out); });
    }
  });
}

Prepared arg_max(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  const ArgMax op = std::get<ArgMax>(desc.op);
  if (desc.outputs[0].dtype != DType::kInt64) return refuse(why, "output must be i64");
  if (!axis_fits(op.axis, desc.inputs[0].shape)) return refuse(why, "axis out of range");
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_arg_max<T>(op, in, out); });
  });
}

Prepared cum_sum(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  if (!one_dtype(desc)) return refuse(why, "input and output differ in dtype");
  const CumSum op = std::get<CumSum>(desc.op);
  if (!axis_fits(op.axis, desc.inputs[0].shape)) return refuse(why, "axis out of range");
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_cum_sum<T>(op, in, out); });
  });
}

}  // namespace serin::kernels::ref
