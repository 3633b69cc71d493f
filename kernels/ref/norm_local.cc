// norm_local.cc: normalisations along a line (Hardmax, LpNormalization), across neighbouring channels (LRN) and over any axes
// (MeanVarianceNormalization), and the reduction that Softmax is made of (ReduceLogSumExp).

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/ref/norm_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

/// The shape with the axes that are not `reduced` as 1, and the other way round.
struct Split {
  Shape kept, reduced;
};

/// All axes where none are given. Nothing where one is out of range.
std::optional<Split> split_axes(const Shape& shape, const std::vector<int64_t>& axes) {
  Split split{shape, shape};
  std::vector<bool> is_reduced(shape.rank(), axes.empty());
  for (const int64_t axis : axes) {
    const auto at = resolve_axis(axis, shape);
    if (!at) return std::nullopt;
    is_reduced[*at] = true;
  }
  for (size_t axis = 0; axis < shape.rank(); ++axis) (is_reduced[axis] ? split.kept : split.reduced)[axis] = 1;
  return split;
}

/// f(first element of x, shape and strides of what is reduced, i) for each kept element.
template <class F>
Fault for_each_reduced(const Shape& x, const std::vector<int64_t>& axes, F&& f) {
  const auto split = split_axes(x, axes);
  if (!split) return "an axis is out of range for " + x.str();
  const Strides strides = row_major_strides(x);
  for_each<1>(split->kept, {strides}, [&](int64_t i, const auto& first) { f(first[0], split->reduced, strides, i); });
  return kOk;
}

}  // namespace

/// 1 at the first largest element of each line, 0 elsewhere.
Prepared hardmax(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const auto axis = resolve_axis(desc.attributes.integer("axis", -1), desc.inputs[0].shape);
  if (!axis) return refuse(why, "axis is out of range");
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([axis = *axis](Stream&, Inputs in, Outputs out) -> Fault {
      const AxisSpan span(in[0].shape, axis);
      span.for_each_line([&](int64_t first) {
        const T* x = in[0].as<const T>() + first;
        int64_t best = 0;
        for (int64_t i = 1; i < span.size; ++i) {
          if (load(x[i * span.inner]) > load(x[best * span.inner])) best = i;
        }
        for (int64_t i = 0; i < span.size; ++i) out[0].as<T>()[first + i * span.inner] = kernels::cast<T>(i == best ? 1 : 0);
      });
      return kOk;
    });
  });
}

/// x / norm(x) along an axis; where the norm is 0, 0.
Prepared lp_norm(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const auto axis = resolve_axis(desc.attributes.integer("axis", -1), desc.inputs[0].shape);
  const int64_t p = desc.attributes.integer("p", 2);
  if (!axis) return refuse(why, "axis is out of range");
  if (p != 1 && p != 2) return refuse(why, "p is " + std::to_string(p) + ", it must be 1 or 2");
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([axis = *axis, p](Stream&, Inputs in, Outputs out) -> Fault {
      const AxisSpan span(in[0].shape, axis);
      span.for_each_line([&](int64_t first) {
        const T* x = in[0].as<const T>() + first;
        double sum = 0;
        for (int64_t i = 0; i < span.size; ++i) {
          const double each = widen(x[i * span.inner]);
          sum += p == 1 ? std::fabs(each) : each * each;
        }
        const double norm = p == 1 ? sum : std::sqrt(sum);
        for (int64_t i = 0; i < span.size; ++i) {
          out[0].as<T>()[first + i * span.inner] = narrow<T>(norm == 0 ? 0.0 : widen(x[i * span.inner]) / norm);
        }
      });
      return kOk;
    });
  });
}

/// x / (bias + alpha / size * sum of the squares of `size` neighbouring channels) ^ beta; x [n, c, ...]
Prepared lrn(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  if (desc.inputs[0].shape.rank() < 2) return refuse(why, "input must have rank 2 or more");
  const double alpha = desc.attributes.number("alpha", 1e-4F), beta = desc.attributes.number("beta", 0.75);
  const double bias = desc.attributes.number("bias", 1);
  const int64_t size = desc.attributes.integer("size", 0);
  if (size < 1) return refuse(why, "size is " + std::to_string(size));
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault {
      const AxisSpan span(in[0].shape, 1);
      const int64_t before = (size - 1) / 2, after = size / 2;
      span.for_each_line([&](int64_t first) {
        const T* x = in[0].as<const T>() + first;
        for (int64_t c = 0; c < span.size; ++c) {
          double squares = 0;
          for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(span.size - 1, c + after); ++k) {
            squares += widen(x[k * span.inner]) * widen(x[k * span.inner]);
          }
          const double divisor = std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
          out[0].as<T>()[first + c * span.inner] = narrow<T>(widen(x[c * span.inner]) / divisor);
        }
      });
      return kOk;
    });
  });
}

/// (x - mean) / (deviation + 1e-9), over `axes`.
Prepared mean_variance_norm(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const std::vector<int64_t> axes = desc.attributes.has("axes") ? desc.attributes.integers("axes") : std::vector<int64_t>{0, 2, 3};
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([axes](Stream&, Inputs in, Outputs out) -> Fault {
      return for_each_reduced(in[0].shape, axes, [&](int64_t first, const Shape& reduced, const Strides& strides, int64_t) {
        const T* x = in[0].as<const T>() + first;
        double sum = 0, squares = 0;
        for_each<1>(reduced, {strides}, [&](int64_t, const auto& at) { sum += widen(x[at[0]]); });
        const auto n = static_cast<double>(reduced.elements());
        const double mean = sum / n;
        for_each<1>(reduced, {strides}, [&](int64_t, const auto& at) { squares += (widen(x[at[0]]) - mean) * (widen(x[at[0]]) - mean); });
        const double deviation = std::sqrt(squares / n) + 1e-9;
        for_each<1>(reduced, {strides},
                    [&](int64_t, const auto& at) { out[0].as<T>()[first + at[0]] = narrow<T>((widen(x[at[0]]) - mean) / deviation); });
      });
    });
  });
}

/// log(sum(exp(x))) with the maximum taken out, so that nothing overflows; axes: an attribute or operand 1. -Inf for an empty set.
Prepared reduce_log_sum_exp(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const std::vector<int64_t> given = desc.attributes.integers("axes");
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([given](Stream&, Inputs in, Outputs out) -> Fault {
      std::vector<int64_t> axes = given;
      if (const TensorView* list = operand(in, 1)) {
        for (const double axis : numbers_of(*list)) axes.push_back(static_cast<int64_t>(axis));
      }
      return for_each_reduced(in[0].shape, axes, [&](int64_t first, const Shape& reduced, const Strides& strides, int64_t i) {
        const T* x = in[0].as<const T>() + first;
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for_each<1>(reduced, {strides}, [&](int64_t, const auto& at) { largest = maximum(static_cast<double>(widen(x[at[0]])), largest); });
        const double shift = std::isinf(largest) ? 0 : largest;
        for_each<1>(reduced, {strides}, [&](int64_t, const auto& at) { sum += std::exp(static_cast<double>(widen(x[at[0]])) - shift); });
        out[0].as<T>()[i] = kernels::cast<T>(shift + std::log(sum));
      });
    });
  });
}

}  // namespace serin::kernels::ref
