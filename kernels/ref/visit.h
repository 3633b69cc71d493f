// visit.h: Chooses a kernel by the C++ type of its elements (kernels/element_type.h), and the type of their sums.
//
//   return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared { return make_kernel(...); });
#pragma once

#include <string>
#include <type_traits>

#include "kernels/element_type.h"
#include "kernels/functors.h"
#include "kernels/make_kernel.h"
#include "kernels/ref/ref.h"

namespace serin::kernels::ref {

using kernels::Element;
using kernels::visit_dtype;

/// For kernels that move elements without reading them: an unsigned type of the same size, or std::string.
template <class F>
auto visit_size(DType dtype, F&& f) {
  if (dtype == DType::kString) return f(Element<std::string>{});
  switch (dtype_size(dtype)) {
    case 1: return f(Element<uint8_t>{});
    case 2: return f(Element<uint16_t>{});
    case 4: return f(Element<uint32_t>{});
    case 8: return f(Element<uint64_t>{});
    default: return f(Element<void>{});
  }
}

template <class T>
inline constexpr bool kIsNumber = !std::is_void_v<T> && !std::is_same_v<T, bool>;

/// Sums of floats are in double, sums of integers in 64 bits of the same signedness (they wrap).
template <class T>
using sum_t = std::conditional_t<kIsFloatKind<T>, double, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class T>
sum_t<T> widen(T x) {
  return static_cast<sum_t<T>>(load(x));
}

/// Back to an element: rounded once (floats) or wrapped (integers).
template <class T>
T narrow(sum_t<T> x) {
  return kernels::cast<T>(x);
}

inline Prepared refuse_dtype(std::string& why, DType dtype) { return refuse(why, "no kernel for " + std::string(dtype_name(dtype))); }

// Calls make(Element<T>{}), which returns the kernel, for the dtype of an operand; dtypes outside the list are refused.

template <class Accepts, class F>
Prepared for_types(DType dtype, std::string& why, Accepts accepts, F&& make) {
  return visit_dtype(dtype, [&]<class T>(Element<T> element) -> Prepared {
    if constexpr (decltype(accepts(element))::value)
      return make(element);
    else
      return refuse_dtype(why, dtype);
  });
}

/// f16, bf16, f32, f64.
template <class F>
Prepared for_floats(DType dtype, std::string& why, F&& make) {
  return for_types(dtype, why, []<class T>(Element<T>) { return std::bool_constant<kIsFloatKind<T>>(); }, make);
}

/// Floats and integers, not bool.
template <class F>
Prepared for_numbers(DType dtype, std::string& why, F&& make) {
  return for_types(dtype, why, []<class T>(Element<T>) { return std::bool_constant<kIsNumber<T>>(); }, make);
}

template <class F>
Prepared for_integers(DType dtype, std::string& why, F&& make) {
  return for_types(dtype, why, []<class T>(Element<T>) { return std::bool_constant<kIsNumber<T> && std::is_integral_v<T>>(); }, make);
}

/// Every type, for kernels that move elements: T is that of visit_size.
template <class F>
Prepared for_sizes(DType dtype, std::string& why, F&& make) {
  return visit_size(dtype, [&]<class T>(Element<T> element) -> Prepared {
    if constexpr (std::is_void_v<T>)
      return refuse_dtype(why, dtype);
    else
      return make(element);
  });
}

/// Every input from `first` on has the dtype of input `first`, as has output 0.
inline bool one_dtype(const OpDesc& desc, size_t first = 0) {
  for (size_t i = first; i < desc.inputs.size(); ++i) {
    if (desc.inputs[i].dtype != desc.outputs[0].dtype) return false;
  }
  return true;
}

/// The first check of a kernel: the operator's number of operands, or a reason.
inline bool has_operands(const OpDesc& desc, size_t inputs, std::string& why) {
  if (desc.inputs.size() == inputs && desc.outputs.size() == 1) return true;
  why = "expects " + std::to_string(inputs) + " inputs and 1 output, got " + std::to_string(desc.inputs.size()) + " and " +
        std::to_string(desc.outputs.size());
  return false;
}

}  // namespace serin::kernels::ref
