// element_type.h: Maps a DType to the C++ type of its elements. Header only; every folder may include it.
//
//   visit_dtype(tensor.dtype, [&]<class T>(Element<T>) { if constexpr (!std::is_void_v<T>) use(tensor.as<const T>()); });
#pragma once

#include <cstdint>

#include "kernels/float16.h"
#include "kernels/tensor.h"

namespace serin::kernels {

template <class T>
struct Element {};

/// Calls f(Element<T>{}) with the type of `dtype`, or f(Element<void>{}) if it has none (undefined, string).
template <class F>
auto visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool: return f(Element<bool>{});
    case DType::kInt8: return f(Element<int8_t>{});
    case DType::kInt16: return f(Element<int16_t>{});
    case DType::kInt32: return f(Element<int32_t>{});
    case DType::kInt64: return f(Element<int64_t>{});
    case DType::kUInt8: return f(Element<uint8_t>{});
    case DType::kUInt16: return f(Element<uint16_t>{});
    case DType::kUInt32: return f(Element<uint32_t>{});
    case DType::kUInt64: return f(Element<uint64_t>{});
    case DType::kFloat16: return f(Element<Half>{});
    case DType::kBFloat16: return f(Element<BFloat16>{});
    case DType::kFloat32: return f(Element<float>{});
    case DType::kFloat64: return f(Element<double>{});
    default: break;
  }
  return f(Element<void>{});
}

}  // namespace serin::kernels
