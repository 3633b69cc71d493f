// quant.h: Parts that the reference kernels of quantised tensors share: elements of any type as numbers, scales, and rounding.
//
// A quantised tensor represents real numbers: (q - zero point) * scale.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "kernels/narrow.h"
#include "kernels/quantise.h"
#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

// quant_linear.cc
Prepared quantize_linear(const GenericDesc& desc, std::string& why);
Prepared dequantize_linear(const GenericDesc& desc, std::string& why);
Prepared dynamic_quantize_linear(const GenericDesc& desc, std::string& why);
// quant_matmul.cc
Prepared matmul_integer(const GenericDesc& desc, std::string& why);
Prepared qlinear_matmul(const GenericDesc& desc, std::string& why);
Prepared matmul_nbits(const GenericDesc& desc, std::string& why);
// quant_conv.cc
Prepared conv_integer(const GenericDesc& desc, std::string& why);
Prepared qlinear_conv(const GenericDesc& desc, std::string& why);
// quant_fused.cc
Prepared quantized_binary(const GenericDesc& desc, std::string& why);
Prepared quantized_global_average_pool(const GenericDesc& desc, std::string& why);
Prepared quantized_lookup(const GenericDesc& desc, std::string& why);
Prepared quantized_matmul(const GenericDesc& desc, std::string& why);
Prepared quantized_max_pool(const GenericDesc& desc, std::string& why);
Prepared dynamic_quantize_matmul(const GenericDesc& desc, std::string& why);
// cast.cc
Prepared cast_by_name(const GenericDesc& desc, std::string& why);
Prepared bit_cast(const GenericDesc& desc, std::string& why);

/// Elements of a tensor as numbers, whatever their type. Exact except for 64-bit integers beyond 2^53.
class Elements {
 public:
  static bool accepts(DType dtype) { return is_narrow(dtype) || (dtype != DType::kUndefined && dtype_size(dtype) > 0); }
  explicit Elements(const TensorView& tensor) : tensor_(tensor) {}

  double operator[](int64_t i) const {
    switch (tensor_.dtype) {
      case DType::kBool:
      case DType::kUInt8: return tensor_.as<const uint8_t>()[i];
      case DType::kInt8: return tensor_.as<const int8_t>()[i];
      case DType::kInt16: return tensor_.as<const int16_t>()[i];
      case DType::kUInt16: return tensor_.as<const uint16_t>()[i];
      case DType::kInt32: return tensor_.as<const int32_t>()[i];
      case DType::kUInt32: return tensor_.as<const uint32_t>()[i];
      case DType::kInt64: return static_cast<double>(tensor_.as<const int64_t>()[i]);
      case DType::kUInt64: return static_cast<double>(tensor_.as<const uint64_t>()[i]);
      case DType::kFloat16: return to_float(tensor_.as<const Half>()[i]);
      case DType::kBFloat16: return to_float(tensor_.as<const BFloat16>()[i]);
      case DType::kFloat32: return tensor_.as<const float>()[i];
      case DType::kFloat64: return tensor_.as<const double>()[i];
      default: return narrow_to_double(tensor_.dtype, tensor_.as<const uint8_t>()[i]);
    }
  }

 private:
  const TensorView& tensor_;
};

/// An operand that may be absent: then 0 everywhere.
class OptionalElements {
 public:
  explicit OptionalElements(const TensorView* tensor) : tensor_(tensor) {}
  double operator[](int64_t i) const { return tensor_ ? Elements(*tensor_)[tensor_->elements() == 1 ? 0 : i] : 0.0; }

 private:
  const TensorView* tensor_;
};

/// The scale for element i of a tensor. There is one for all, one for each index of an axis, or one for each block of `block_size` elements
/// along it.
class Granularity {
 public:
  /// Nothing if `scale` has a shape that does not fit.
  static std::optional<Granularity> find(const Shape& x, const Shape& scale, int64_t axis, int64_t block_size) {
    Granularity result;
    if (scale.elements() == 1) return result;
    const auto rank = static_cast<int64_t>(x.rank());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || block_size < 0) return std::nullopt;
    const auto at = static_cast<size_t>(axis);
    result.size_ = x[at];
    result.inner_ = 1;
    for (size_t i = at + 1; i < x.rank(); ++i) result.inner_ *= x[i];
    if (block_size == 0) return scale.rank() == 1 && scale[0] == x[at] ? std::optional(result) : std::nullopt;
    Shape expected = x;
    expected[at] = (x[at] + block_size - 1) / block_size;
    result.block_ = block_size;
    return scale == expected ? std::optional(result) : std::nullopt;
  }

  int64_t index(int64_t i) const {
    if (inner_ == 0) return 0;
    const int64_t along = i / inner_ % size_;
    if (block_ == 0) return along;
    const int64_t blocks = (size_ + block_ - 1) / block_;
    return (i / inner_ / size_ * blocks + along / block_) * inner_ + i % inner_;
  }

 private:
  int64_t inner_ = 0;  ///< elements between adjacent indices of the axis; 0: one scale for all
  int64_t size_ = 1;
  int64_t block_ = 0;
};

inline double quantized(double x, double zero_point, IntegerRange range) {
  return kernels::quantized(x, zero_point, range.low, range.high);
}

/// A quantised type with its scale and zero point, the target for real numbers.
struct Quantiser {
  float scale = 1;
  double zero = 0;
  IntegerRange range{0, 255};

  static Quantiser of(DType dtype, const TensorView& scale, const TensorView* zero) {
    return {static_cast<float>(Elements(scale)[0]), zero ? Elements(*zero)[0] : 0.0, *quantized_range(dtype)};
  }
  /// Nothing below zero.
  void relu() { range.low = range.low < zero ? zero : range.low; }
};
inline void apply_activation(const Attributes& attributes, std::string_view key, Quantiser& quantiser) {
  if (attributes.text(key, "") == "Relu") quantiser.relu();
}

/// quant_linear.cc: x as u8, with the scale and zero point that cover the range from the least to the largest element, including 0.
DynamicScale dynamically_quantised(std::span<const float> x, uint8_t* y);

inline int32_t byte_of(const TensorView& tensor, int64_t i) {
  return tensor.dtype == DType::kInt8 ? tensor.as<const int8_t>()[i] : tensor.as<const uint8_t>()[i];
}

/// An integer within the range of `dtype` (one that quantized_range supports).
inline void store_integer(const TensorView& y, int64_t i, double value) {
  const auto whole = static_cast<int32_t>(value);
  if (dtype_size(y.dtype) == 2)
    y.as<uint16_t>()[i] = static_cast<uint16_t>(whole);
  else
    y.as<uint8_t>()[i] = static_cast<uint8_t>(whole);
}

}  // namespace serin::kernels::ref
