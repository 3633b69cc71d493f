// reduce.cc: Reduce over any axes, and the two that work along one axis: ArgMax and CumSum. kernels/reduction.h says what they compute.

#include "kernels/reduction.h"

#include <algorithm>

#include "kernels/indexing.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

namespace {

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
    for_each<1>(reduced, {strides}, [&](int64_t, const auto& at) {
      const sum_t<T> term = reduced_term(op.fn, widen(first[at[0]]));
      sum = combined(op.fn, term, sum);
    });
    out[0].as<T>()[i] = kernels::reduced<T>(op.fn, sum, count);
  });
  return kOk;
}

template <class T>
Fault run_arg_max(const ArgMax& op, Inputs in, Outputs out) {
  const AxisView axis(in[0].shape, static_cast<size_t>(op.axis));
  if (axis.size == 0 && axis.outer * axis.inner != 0) return "ArgMax over axis " + std::to_string(op.axis) + " of size 0";
  for (int64_t o = 0; o < axis.outer; ++o) {
    for (int64_t j = 0; j < axis.inner; ++j) {
      const T* x = in[0].as<const T>() + axis.at(o, 0, j);
      int64_t best = 0;
      for (int64_t i = 1; i < axis.size; ++i) {
        if (is_better(load(x[i * axis.inner]), i, load(x[best * axis.inner]), best, op.min, op.last)) best = i;
      }
      out[0].as<int64_t>()[o * axis.inner + j] = best;
    }
  }
  return kOk;
}

template <class T>
Fault run_cum_sum(const CumSum& op, Inputs in, Outputs out) {
  const AxisView axis(in[0].shape, static_cast<size_t>(op.axis));
  for (int64_t o = 0; o < axis.outer; ++o) {
    for (int64_t j = 0; j < axis.inner; ++j) {
      sum_t<T> sum = 0;
      for (int64_t step = 0; step < axis.size; ++step) {
        const int64_t i = op.reverse ? axis.size - 1 - step : step;
        const int64_t at = axis.at(o, i, j);
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
