// float16.h: The two 16-bit floating point types, for storage only: arithmetic happens in float.
//
// Conversions work on the bits, so that they give the same result on every machine and need no instruction set. (A device has an
// instruction, with the same results except for the bits of a NaN.) To 16 bits they round to nearest, ties to even, keep NaN a NaN, and
// overflow to infinity. From double, and so from integers, they go through a float rounded to odd. Two roundings to nearest would be wrong
// in the rare case that the first gives a tie of the second.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__CUDACC__)
#define SERIN_HD __host__ __device__
#else
#define SERIN_HD
#endif

namespace serin::kernels {

struct Half {
  uint16_t bits;
};

struct BFloat16 {
  uint16_t bits;
};

SERIN_HD inline float to_float(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

SERIN_HD inline float to_float(Half x) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
#else
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);  // Inf, NaN
  if (magnitude < 0x0400u) {                                                                               // zero, subnormal: m * 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
#endif
}

SERIN_HD inline BFloat16 to_bfloat16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  BFloat16 value;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(value.bits) : "f"(x));
  return value;
#else
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
#endif
}

SERIN_HD inline Half to_half(float x) {
#if defined(__CUDA_ARCH__)
  Half value;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(value.bits) : "f"(x));
  return value;
#else
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu))};
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: after adding 0.5 the low bits are the value times 2^24, rounded by the adder
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13))};
#endif
}

/// The float next to `x` toward zero with its last bit set, unless `x` is a float: rounding it again equals rounding `x` once.
SERIN_HD inline float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || x != x) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if ((back < 0 ? -back : back) > (x < 0 ? -x : x)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

SERIN_HD inline Half to_half(double x) { return to_half(round_to_odd(x)); }
SERIN_HD inline BFloat16 to_bfloat16(double x) { return to_bfloat16(round_to_odd(x)); }

}  // namespace serin::kernels
