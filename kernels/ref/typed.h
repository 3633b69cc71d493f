// typed.h: Parts that kernels by name share in addition to their element types: axes, and operands with one number or a few.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/indexing.h"
#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

/// Operands [first, last) and output 0 have one dtype; absent operands do not count.
inline bool same_dtype(const GenericDesc& desc, size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    if (desc.has(i) && desc.inputs[i].dtype != desc.outputs[0].dtype) return false;
  }
  return true;
}

inline Prepared refuse_mixed(std::string& why) { return refuse(why, "operands differ in dtype"); }

/// An axis that may be negative, as an index; nothing if it is out of range.
inline std::optional<size_t> resolve_axis(int64_t axis, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.rank());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? std::optional(static_cast<size_t>(axis)) : std::nullopt;
}

/// An axis and the sizes before and after it: element (o, i, j) is at (o * size + i) * inner + j.
struct AxisSpan {
  int64_t outer, size, inner;
  AxisSpan(const Shape& shape, size_t axis)
      : outer(product(shape, 0, axis)), size(shape[axis]), inner(product(shape, axis + 1, shape.rank())) {}

  /// Calls f(offset of the first element) for each line along the axis; its elements are `inner` apart.
  template <class F>
  void for_each_line(F&& f) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t j = 0; j < inner; ++j) f(o * size * inner + j);
    }
  }
};

/// The one integer or number of an operand, whatever its dtype; nothing if it is absent, empty or not a number.
inline std::optional<double> scalar_of(const TensorView* x) {
  if (!x || x->elements() < 1) return std::nullopt;
  return visit_dtype(x->dtype, [&]<class T>(Element<T>) -> std::optional<double> {
    if constexpr (std::is_void_v<T>)
      return std::nullopt;
    else
      return static_cast<double>(load(*x->as<const T>()));
  });
}

inline std::optional<int64_t> integer_of(const TensorView* x) {
  if (!x || x->elements() < 1) return std::nullopt;
  return visit_dtype(x->dtype, [&]<class T>(Element<T>) -> std::optional<int64_t> {
    if constexpr (kIsNumber<T> && std::is_integral_v<T>)
      return static_cast<int64_t>(*x->as<const T>());
    else
      return std::nullopt;
  });
}

/// All elements as numbers: for short operands (parameters of channels, rates). Empty if the dtype is not a number.
inline std::vector<double> numbers_of(const TensorView& x) {
  std::vector<double> numbers;
  visit_dtype(x.dtype, [&]<class T>(Element<T>) {
    if constexpr (!std::is_void_v<T>) {
      for (const T each : x.span<const T>()) numbers.push_back(static_cast<double>(load(each)));
    }
  });
  return numbers;
}

inline void store_number(const TensorView& y, int64_t i, double value) {
  visit_dtype(y.dtype, [&]<class T>(Element<T>) {
    if constexpr (!std::is_void_v<T>) y.as<T>()[i] = kernels::cast<T>(value);
  });
}

}  // namespace serin::kernels::ref
