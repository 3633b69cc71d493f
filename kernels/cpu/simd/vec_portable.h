// vec_portable.h: The vector type of four floats as a compiler vector, for machines without AVX2, and the definition of a vector type's
// functions.
//
// +, -, *, / come with the type F. Functions that are not commutative for NaN say so; they follow the x86 instructions.
#pragma once

#include <cstdint>

namespace serin::kernels::cpu {

struct VecPortable {
  typedef float F __attribute__((vector_size(16)));
  typedef int32_t M __attribute__((vector_size(16)));  // -1: yes
  static constexpr int kWidth = 4;
  static constexpr bool kFused = false;  ///< fma() rounds once
  static constexpr int kGemmRows = 4;

  static F set(float x) { return F{x, x, x, x}; }
  static F load(const float* p) {
    return each([p](int i) { return p[i]; });
  }
  /// The first n elements; `fill` in the others. Reads nothing after them.
  static F load_n(const float* p, int n, float fill) {
    return each([=](int i) { return i < n ? p[i] : fill; });
  }
  static void store(float* p, F x) { __builtin_memcpy(p, &x, sizeof x); }
  static void store_n(float* p, F x, int n) { __builtin_memcpy(p, &x, static_cast<unsigned>(n) * sizeof(float)); }
  /// x in the first n elements, `others` in the rest.
  static F keep_n(F x, int n, F others) {
    return each([=](int i) { return i < n ? x[i] : others[i]; });
  }
  /// p[i], p[2 * i] or p[stride * i] for each bit i of `lanes`, `fill` for the others: those are not read. `elements`: the bits of `lanes`
  /// moved to 2 * i, with those between them also set; all of them may be read.
  static F load_lanes(const float* p, uint32_t lanes, float fill) { return load_strided(p, 1, lanes, fill); }
  static F load_even(const float* p, uint32_t lanes, uint32_t, float fill) { return load_strided(p, 2, lanes, fill); }
  static F load_strided(const float* p, int64_t stride, uint32_t lanes, float fill) {
    return each([=](int i) { return lanes >> i & 1u ? p[i * stride] : fill; });
  }
  /// p[index[i]].
  static F gather(const float* p, const int32_t* index) {
    return each([=](int i) { return p[index[i]]; });
  }
  /// Element i ^ kStep at i.
  template <int kStep>
  static F swap(F x) {
    return each([x](int i) { return x[i ^ kStep]; });
  }

  static F fma(F a, F b, F c) { return a * b + c; }
  /// fma(a, b, sum) in the register of `sum`: for tiles whose sums fill the registers.
  static F accumulate(F a, F b, F sum) { return fma(a, b, sum); }
  static F max(F a, F b) { return a > b ? a : b; }  ///< b if either is NaN
  static F min(F a, F b) { return a < b ? a : b; }  ///< b if either is NaN
  static F sqrt(F x) {
    return each([x](int i) { return __builtin_sqrtf(x[i]); });
  }
  static F floor(F x) {
    return each([x](int i) { return __builtin_floorf(x[i]); });
  }
  static F ceil(F x) {
    return each([x](int i) { return __builtin_ceilf(x[i]); });
  }
  static F round(F x) {  ///< half to even
    return each([x](int i) { return __builtin_nearbyintf(x[i]); });
  }
  static F abs(F x) { return from_bits(bits(x) & 0x7fffffff); }
  static F copysign(F magnitude, F sign) { return from_bits((bits(magnitude) & 0x7fffffff) | (bits(sign) & INT32_MIN)); }

  static M less(F a, F b) { return a < b; }
  static M less_equal(F a, F b) { return a <= b; }
  static M equal(F a, F b) { return a == b; }
  static M is_nan(F x) { return x != x; }
  static F blend(M mask, F yes, F no) { return mask ? yes : no; }
  static bool any(M mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; }
  /// One byte, 0 or 1, for each of the first n elements.
  static void store_bool(void* p, M mask, int n) {
    for (int i = 0; i < n; ++i) static_cast<uint8_t*>(p)[i] = mask[i] ? 1 : 0;
  }

  /// x * 2^n for an integer n in [-252, 254]; gradual underflow, overflow to infinity.
  static F scale2(F x, F n) {
    const M power = __builtin_convertvector(n, M);
    const M half = power >> 1;
    return x * from_bits((half + 127) << 23) * from_bits((power - half + 127) << 23);
  }
  /// x = mantissa * 2^exponent with 1 <= mantissa < 2, for a normal x > 0.
  static F exponent(F x) { return __builtin_convertvector(((bits(x) >> 23) & 0xff) - 127, F); }
  static F mantissa(F x) { return from_bits((bits(x) & 0x007fffff) | 0x3f800000); }

  // kWidth elements of another type as floats, and back: rounded to nearest even; to i32 truncated and saturated, NaN as 0.
  static F load_f16(const void* p) {
    return each([p](int i) {
      const uint32_t half = element<uint16_t>(p, i);
      const uint32_t magnitude = half & 0x7fffu;
      float value = __builtin_bit_cast(float, (magnitude << 13) + (magnitude >= 0x7c00u ? 224u << 23 : 112u << 23));
      if (magnitude < 0x0400u) value = static_cast<float>(magnitude) * 0x1p-24f;
      return half & 0x8000u ? -value : value;
    });
  }
  static F load_bf16(const void* p) {
    return each([p](int i) { return __builtin_bit_cast(float, static_cast<uint32_t>(element<uint16_t>(p, i)) << 16); });
  }
  static F load_u8(const void* p) {
    return each([p](int i) { return static_cast<float>(element<uint8_t>(p, i)); });
  }
  static F load_i8(const void* p) {
    return each([p](int i) { return static_cast<float>(element<int8_t>(p, i)); });
  }
  /// The low and the high four bits of kWidth bytes.
  static void load_halves(const void* p, F& low, F& high) {
    low = each([p](int i) { return static_cast<float>(element<uint8_t>(p, i) & 15); });
    high = each([p](int i) { return static_cast<float>(element<uint8_t>(p, i) >> 4); });
  }
  static F load_i32(const void* p) {
    return each([p](int i) { return static_cast<float>(element<int32_t>(p, i)); });
  }
  static void store_bf16(void* p, F x) {
    for (int i = 0; i < kWidth; ++i) {
      const uint32_t b = __builtin_bit_cast(uint32_t, static_cast<float>(x[i]));
      const uint32_t rounded = x[i] != x[i] ? b | 0x400000u : b + 0x7fffu + (b >> 16 & 1u);
      put(p, i, static_cast<uint16_t>(rounded >> 16));
    }
  }
  static void store_i32(void* p, F x) {
    for (int i = 0; i < kWidth; ++i) {
      const float v = x[i];
      put(p, i, v != v ? 0 : v >= 0x1p31f ? INT32_MAX : v <= -0x1p31f ? INT32_MIN : static_cast<int32_t>(v));
    }
  }
  /// Truncated to integers of 8 or 16 bits that can represent them.
  template <class T>
  static void store_narrow(void* p, F x) {
    for (int i = 0; i < kWidth; ++i) put(p, i, static_cast<T>(x[i]));
  }

 private:
  template <class G>
  static F each(G&& g) {
    return F{g(0), g(1), g(2), g(3)};
  }
  template <class T>
  static T element(const void* p, int i) {
    return static_cast<const T*>(p)[i];
  }
  template <class T>
  static void put(void* p, int i, T x) {
    static_cast<T*>(p)[i] = x;
  }
  static M bits(F x) { return (M)x; }
  static F from_bits(M x) { return (F)x; }
};

}  // namespace serin::kernels::cpu
