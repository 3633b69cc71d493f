// quantise.h: Quantises numbers and converts them back, one element at a time: one source for all backends.
//
// A quantised q represents (q - zero point) * scale.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "kernels/float16.h"
#include "kernels/make_kernel.h"
#include "kernels/tensor.h"

namespace serin::kernels {

struct IntegerRange {
  double low, high;
};
/// For the result types of QuantizeLinear; nothing for others.
constexpr std::optional<IntegerRange> quantized_range(DType dtype) {
  switch (dtype) {
    case DType::kInt8: return IntegerRange{-128, 127};
    case DType::kUInt8: return IntegerRange{0, 255};
    case DType::kInt16: return IntegerRange{-32768, 32767};
    case DType::kUInt16: return IntegerRange{0, 65535};
    case DType::kInt4: return IntegerRange{-8, 7};
    case DType::kUInt4: return IntegerRange{0, 15};
    case DType::kInt2: return IntegerRange{-2, 1};
    case DType::kUInt2: return IntegerRange{0, 3};
    default: return std::nullopt;
  }
}

inline bool is_byte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUInt8; }

/// Whether a weight's zero points are known at load and all the middle of its type.
inline bool is_symmetric(const OpDesc& desc, size_t weight, size_t zero) {
  const uint8_t middle = desc.inputs[weight].dtype == DType::kInt8 ? 0 : 128;
  if (!has_operand(desc, zero)) return middle == 0;
  const TensorDesc& points = desc.inputs[zero];
  if (!points.constant) return false;
  const auto* bytes = points.constant.as<uint8_t>();
  return std::all_of(bytes, bytes + points.shape.elements(), [middle](uint8_t byte) { return byte == middle; });
}

/// round(x) + zero point, limited to [low, high]; halves round to even, NaN counts as 0.
template <class C>
SERIN_HD inline C quantized(C x, C zero_point, C low, C high) {
  const C q = (x != x ? C(0) : std::nearbyint(x)) + zero_point;
  return q < low ? low : q > high ? high : q;
}

/// The scale and zero point of DynamicQuantizeLinear, for elements from `low` (0 or less) to `high` (0 or more): all of them fit u8, and 0
/// is exact.
struct DynamicScale {
  float scale;
  uint8_t zero;

  SERIN_HD static DynamicScale of(float low, float high) {
    float scale = (high - low) / 255.f;
    if (scale == 0) scale = 1;  // all zeros: any scale will do
    return {scale, static_cast<uint8_t>(quantized(-low / scale, 0.f, 0.f, 255.f))};
  }
  SERIN_HD uint8_t quantise(float x) const { return static_cast<uint8_t>(quantized(x / scale, static_cast<float>(zero), 0.f, 255.f)); }
};

}  // namespace serin::kernels
