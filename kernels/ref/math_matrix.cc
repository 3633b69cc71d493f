// math_matrix.cc: CumProd, Det and EyeLike.

#include <cmath>
#include <vector>

#include "kernels/ref/math_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

/// x, axis (one integer) -> the products of the elements up to (exclusive: before) each one, from the end where reverse.
Prepared cum_prod(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const bool exclusive = desc.attributes.integer("exclusive", 0) != 0, reverse = desc.attributes.integer("reverse", 0) != 0;
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([exclusive, reverse](Stream&, Inputs in, Outputs out) -> Fault {
      const auto given = integer_of(operand(in, 1));
      const auto axis = given ? resolve_axis(*given, in[0].shape) : std::nullopt;
      if (!axis) return "axis is out of range for " + in[0].shape.str();
      const AxisSpan span(in[0].shape, *axis);
      span.for_each_line([&](int64_t first) {
        sum_t<T> product = 1;
        for (int64_t step = 0; step < span.size; ++step) {
          const int64_t at = first + (reverse ? span.size - 1 - step : step) * span.inner;
          const sum_t<T> next = kernels::binary(BinaryFn::kMul, product, widen(in[0].as<const T>()[at]));
          out[0].as<T>()[at] = narrow<T>(exclusive ? product : next);
          product = next;
        }
      });
      return kOk;
    });
  });
}

namespace {

/// By elimination with the largest pivot of each column. Destroys `a` [n, n].
double determinant(std::vector<double>& a, size_t n) {
  double det = 1;
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::fabs(a[row * n + column]) > std::fabs(a[pivot * n + column])) pivot = row;
    }
    if (a[pivot * n + column] == 0) return 0;
    if (pivot != column) {
      for (size_t k = column; k < n; ++k) std::swap(a[pivot * n + k], a[column * n + k]);
      det = -det;
    }
    det *= a[column * n + column];
    for (size_t row = column + 1; row < n; ++row) {
      const double factor = a[row * n + column] / a[column * n + column];
      for (size_t k = column + 1; k < n; ++k) a[row * n + k] -= factor * a[column * n + k];
    }
  }
  return det;
}

}  // namespace

/// x [..., n, n] -> [...]
Prepared det(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() < 2 || x[x.rank() - 1] != x[x.rank() - 2]) return refuse(why, "needs square matrices, got " + x.str());
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
      const auto n = static_cast<size_t>(in[0].shape.back());
      std::vector<double> matrix(n * n);
      for (int64_t i = 0; i < out[0].elements(); ++i) {
        const T* values = in[0].as<const T>() + static_cast<size_t>(i) * n * n;
        for (size_t k = 0; k < n * n; ++k) matrix[k] = widen(values[k]);
        out[0].as<T>()[i] = narrow<T>(determinant(matrix, n));
      }
      return kOk;
    });
  });
}

/// Ones on the diagonal `k` (positive: above the main one) of a matrix of the input's shape. The input's elements do not matter.
Prepared eye_like(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].shape.rank() != 2) return refuse(why, "needs a matrix, got " + desc.inputs[0].shape.str());
  const int64_t k = desc.attributes.integer("k", 0);
  return visit_dtype(desc.outputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>) {
      return refuse_dtype(why, desc.outputs[0].dtype);
    } else {
      return make_kernel([k](Stream&, Inputs, Outputs out) -> Fault {
        const int64_t rows = out[0].shape[0], columns = out[0].shape[1];
        std::fill_n(out[0].as<T>(), rows * columns, kernels::cast<T>(0));
        if (k <= -rows || k >= columns) return kOk;  // also keeps the sums below from overflowing
        for (int64_t row = std::max<int64_t>(0, -k); row < rows && row + k < columns; ++row) {
          out[0].as<T>()[row * columns + row + k] = kernels::cast<T>(1);
        }
        return kOk;
      });
    }
  });
}

}  // namespace serin::kernels::ref
