// quant.h: Parts that the kernels of quantised tensors share on a device: scales and zero points in its memory, and the steps after a sum.
//
// A result has the same bytes as the reference's: each product and each sum of floats is rounded separately (no fused multiply-add), in the
// reference's order.
#pragma once

#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/launch.h"
#include "kernels/quantise.h"

namespace serin::kernels::cuda {

/// Rounded before an addition.
__device__ inline float rounded_product(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

/// The value of a byte of a quantised tensor, signed or not.
__device__ inline int as_number(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }

/// Bytes, one for all or one for each row or column; null: 0.
struct ZeroPoints {
  const uint8_t* at = nullptr;
  bool is_signed = false;
  int step = 0;

  __device__ int operator()(int64_t i) const { return at ? as_number(at[i * step], is_signed) : 0; }
};

/// A quantised type of bytes with its scale and zero point; nothing below zero after a Relu.
struct Target {
  const float* scale = nullptr;
  ZeroPoints zero;
  bool is_signed = false, relu = false;
};

/// The same after reading it from memory.
struct Quantiser {
  float scale, zero, low, high;

  __device__ explicit Quantiser(const Target& to) : Quantiser(*to.scale, static_cast<float>(to.zero(0)), to.is_signed, to.relu) {}
  __device__ Quantiser(float the_scale, float the_zero, bool is_signed, bool relu)
      : scale(the_scale), zero(the_zero), low(is_signed ? -128.f : 0.f), high(is_signed ? 127.f : 255.f) {
    if (relu && low < zero) low = zero;
  }
  __device__ float operator()(float x) const { return quantized(x, zero, low, high); }
};

/// Processing of a sum of products of a's row and b's column. `scales`: of a and b; their product applies to the sum.
struct ByteFinish {
  enum class Kind : uint8_t { kSums, kReal, kBytes } kind = Kind::kSums;
  const float *a_scale = nullptr, *b_scale = nullptr;
  int a_scale_step = 0, b_scale_step = 0;
  const int32_t* bias = nullptr;     ///< of the sum
  const float* real_bias = nullptr;  ///< for a real result
  bool relu = false;                 ///< for a real result
  Target to;
  // A convolution may continue: add a residual and quantise the sum, and quantise again.
  bool sums = false, again = false;
  const uint8_t* residual = nullptr;
  const float* residual_scale = nullptr;
  ZeroPoints residual_zero;
  bool residual_signed = false;
  Target sum_to;
  float again_scale = 1, again_zero = 0;
  bool again_relu = false, again_signed = false;

  __device__ void store(void* y, int64_t i, int sum, int64_t row, int64_t column) const {
    if (kind == Kind::kSums) {
      static_cast<int32_t*>(y)[i] = sum;
      return;
    }
    const auto total = static_cast<float>(static_cast<int64_t>(sum) + (bias ? bias[column] : 0));
    const float scale = rounded_product(a_scale[row * a_scale_step], b_scale[column * b_scale_step]);
    if (kind == Kind::kReal) {
      float real = rounded_product(total, scale);
      if (real_bias) real += real_bias[column];
      static_cast<float*>(y)[i] = relu && real < 0 ? 0.f : real;
      return;
    }
    const Quantiser first(to);
    float q = first(rounded_product(total, scale / first.scale));
    if (sums || again) q = further(q, first, i);
    static_cast<uint8_t*>(y)[i] = static_cast<uint8_t>(static_cast<int>(q));
  }

 private:
  __device__ float further(float q, const Quantiser& first, int64_t i) const {
    const Quantiser second = sums ? Quantiser(sum_to) : first;
    if (sums) {
      float real = rounded_product(q - first.zero, first.scale / second.scale);
      if (residual) {
        const int own = as_number(residual[i], residual_signed) - residual_zero(0);
        real += rounded_product(static_cast<float>(own), *residual_scale / second.scale);
      }
      q = second(real);
    }
    if (!again) return q;
    const Quantiser third(again_scale, again_zero, again_signed, again_relu);
    return third(rounded_product(q - second.zero, second.scale / third.scale));
  }
};

// ---- descriptions ----

inline bool is_scale(const OpDesc& desc, size_t i) { return has_operand(desc, i) && desc.inputs[i].dtype == DType::kFloat32; }
inline bool is_number(const OpDesc& desc, size_t i) { return has_operand(desc, i) && desc.inputs[i].shape.elements() == 1; }

/// Zero points of a run, from operand i, which may be absent.
inline ZeroPoints zero_points(Inputs in, size_t i, int step = 0) {
  const TensorView* const points = operand(in, i);
  if (!points) return {};
  return {points->as<const uint8_t>(), points->dtype == DType::kInt8, points->elements() == 1 ? 0 : step};
}
/// The target whose scale is operand i, whose zero point the next.
inline Target target_of(Inputs in, size_t i, DType dtype, bool relu) {
  return {in[i].as<const float>(), zero_points(in, i + 1), dtype == DType::kInt8, relu};
}

}  // namespace serin::kernels::cuda
