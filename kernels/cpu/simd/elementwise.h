// elementwise.h: Loops over arrays of floats: one function of one or two operands at a time, and conversions.
#pragma once

#include "kernels/cpu/simd/math.h"
#include "kernels/cpu/simd/power.h"
#include "kernels/cpu/simd/simd.h"
#include "kernels/cpu/simd/trigonometry.h"

namespace serin::kernels::cpu {

/// min(max(x, low), high); NaN stays, because max and min return their second operand for it.
template <class V>
typename V::F clip(typename V::F x, typename V::F low, typename V::F high) {
  return V::min(high, V::max(low, x));
}

/// y, with scalar(a[i], b[i]) in the elements that are `slow`: few or none.
template <class V, class Scalar>
typename V::F redo(typename V::M slow, typename V::F y, typename V::F a, typename V::F b, Scalar scalar) {
  if (!V::any(slow)) return y;
  float flags[V::kWidth], as[V::kWidth], bs[V::kWidth], ys[V::kWidth];
  V::store(flags, V::blend(slow, V::set(1.f), V::set(0.f)));
  V::store(as, a);
  V::store(bs, b);
  V::store(ys, y);
  for (int i = 0; i < V::kWidth; ++i) {
    if (flags[i] != 0) ys[i] = scalar(as[i], bs[i]);
  }
  return V::load(ys);
}

/// y = f(x); a huge x uses the C library's reduction.
template <class V, class Scalar>
typename V::F of_angle(typename V::F x, typename V::F y, Scalar scalar) {
  return redo<V>(V::less(V::set(math::kLargestAngle), V::abs(x)), y, x, x, [scalar](float angle, float) { return scalar(angle); });
}

/// A zero or a negative number to a power. Infinities, NaN, subnormals and out-of-range powers follow the C library's rules; without fused
/// products all do.
template <class V>
typename V::F power(typename V::F a, typename V::F b) {
  const auto zero = V::set(0.f), one = V::set(1.f), infinity = V::set(__builtin_inff()), size = V::abs(a);
  const auto scalar_power = [](float base, float exponent) { return __builtin_powf(base, exponent); };
  if constexpr (!V::kFused) return redo<V>(V::less(zero, one), a, a, b, scalar_power);
  const auto is_zero = V::equal(a, zero);
  const auto ordinary = V::blend(V::less_equal(V::set(0x1p-126f), size), zero, V::blend(is_zero, zero, one));
  const auto bad_b = V::blend(V::less(V::abs(b), V::set(1e30f)), ordinary, one);
  const auto bad = V::blend(V::less(size, infinity), bad_b, one);

  const auto of_zero = V::blend(V::less(zero, b), zero, V::blend(V::less(b, zero), infinity, one));
  const auto magnitude = V::blend(is_zero, of_zero, math::pow<V>(V::blend(is_zero, one, size), b));
  const auto half = b * V::set(0.5f), whole = V::floor(b);
  const auto signed_ = V::blend(V::equal(V::floor(half), half), magnitude, V::copysign(magnitude, a));  // an odd power keeps the sign
  const auto negative = V::blend(V::less(a, zero), V::set(__builtin_nanf("")), magnitude);              // other powers have no real value
  const auto value = V::blend(V::equal(whole, b), signed_, negative);
  return redo<V>(V::less(zero, bad), value, a, b, scalar_power);
}

template <class V>
typename V::F softsign(typename V::F x) {
  const auto finite = clip<V>(x, V::set(-1e30f), V::set(1e30f));  // an infinity would be NaN
  return finite / (V::set(1.f) + V::abs(finite));
}

template <class V, UnaryFn kFn>
typename V::F unary_value(typename V::F x, typename V::F alpha, typename V::F beta) {
  const auto zero = V::set(0.f), one = V::set(1.f);
#define SERIN_UNARY(name, word, a, b, epilogue, chain, finite, scalar, vector, ...) \
  if constexpr (kFn == UnaryFn::k##name)                                            \
    return vector;                                                                  \
  else
#define SERIN_TRUTH_FN(...)
#define SERIN_TEST_FN(...)
#include "kernels/functions.def"
  return x;
}

template <class V, UnaryFn kFn>
void unary_loop(const float* x, float* y, int64_t n, float alpha, float beta) {
  const auto a = V::set(alpha), b = V::set(beta);
  int64_t i = 0;
  for (; i + V::kWidth <= n; i += V::kWidth) V::store(y + i, unary_value<V, kFn>(V::load(x + i), a, b));
  const int rest = static_cast<int>(n - i);
  if (rest > 0) V::store_n(y + i, unary_value<V, kFn>(V::load_n(x + i, rest, 0.f), a, b), rest);
}

template <class V>
UnaryLoop unary_loop_of(UnaryFn fn) {
  switch (fn) {
#define SERIN_UNARY(name, ...) \
  case UnaryFn::k##name: return &unary_loop<V, UnaryFn::k##name>;
#define SERIN_TRUTH_FN(...)
#define SERIN_TEST_FN(...)
#include "kernels/functions.def"
    default: return nullptr;  // these return bool
  }
}

/// max(a, b), NaN if either is NaN; V::max alone would drop one in `a`.
template <class V>
typename V::F max_nan(typename V::F a, typename V::F b) {
  return V::blend(V::is_nan(a), a, V::max(a, b));
}
template <class V>
typename V::F min_nan(typename V::F a, typename V::F b) {
  return V::blend(V::is_nan(a), a, V::min(a, b));
}

template <class V, BinaryFn kFn>
void binary_step(typename V::F a, typename V::F b, void* y, int64_t i, int n) {
  float* out = static_cast<float*>(y) + i;
  uint8_t* out_bool = static_cast<uint8_t*>(y) + i;
  const auto store = [out, n](typename V::F value) { n == V::kWidth ? V::store(out, value) : V::store_n(out, value, n); };
  const auto store_bool = [out_bool, n](typename V::M value) { V::store_bool(out_bool, value, n); };
#define SERIN_STORE_Vector(name, store, vector) \
  if constexpr (kFn == BinaryFn::k##name) store(vector);
#define SERIN_STORE_Scalar(name, store, vector)
#define SERIN_ARITHMETIC_FN(name, loop, chain, finite, scalar, vector) SERIN_STORE_##loop(name, store, vector)
#define SERIN_COMPARE_FN(name, loop, chain, finite, scalar, vector) SERIN_STORE_##loop(name, store_bool, vector)
#include "kernels/functions.def"
#undef SERIN_STORE_Vector
#undef SERIN_STORE_Scalar
}

template <class V, BinaryFn kFn>
void binary_loop(const float* a, bool a_scalar, const float* b, bool b_scalar, void* y, int64_t n) {
  const auto a0 = V::set(n > 0 ? *a : 0.f), b0 = V::set(n > 0 ? *b : 0.f);
  int64_t i = 0;
  for (; i + V::kWidth <= n; i += V::kWidth) {
    binary_step<V, kFn>(a_scalar ? a0 : V::load(a + i), b_scalar ? b0 : V::load(b + i), y, i, V::kWidth);
  }
  const int rest = static_cast<int>(n - i);
  if (rest > 0) binary_step<V, kFn>(a_scalar ? a0 : V::load_n(a + i, rest, 0.f), b_scalar ? b0 : V::load_n(b + i, rest, 1.f), y, i, rest);
}

template <class V>
BinaryLoop binary_loop_of(BinaryFn fn) {
  switch (fn) {
#define SERIN_LOOP_Vector(name) \
  case BinaryFn::k##name: return &binary_loop<V, BinaryFn::k##name>;
#define SERIN_LOOP_Scalar(name)
#define SERIN_BINARY(name, loop, ...) SERIN_LOOP_##loop(name)
#include "kernels/functions.def"
#undef SERIN_LOOP_Vector
#undef SERIN_LOOP_Scalar
    default: return nullptr;  // those of the reference kernel
  }
}

template <class V>
void normalize(const float* x, float* y, int64_t n, float mean, float factor, float bias) {
  const auto m = V::set(mean), f = V::set(factor), b = V::set(bias);
  int64_t i = 0;
  for (; i + V::kWidth <= n; i += V::kWidth) V::store(y + i, V::fma(V::load(x + i) - m, f, b));
  const int rest = static_cast<int>(n - i);
  if (rest > 0) V::store_n(y + i, V::fma(V::load_n(x + i, rest, 0.f) - m, f, b), rest);
}

/// Conversions process whole vectors; the last, partial one uses buffers on the stack. kLoad and kStore convert kWidth elements.
template <class V, class S, class D, auto kLoad, auto kStore>
void cast_loop(const void* x, void* y, int64_t n) {
  const S* source = static_cast<const S*>(x);
  D* target = static_cast<D*>(y);
  int64_t i = 0;
  for (; i + V::kWidth <= n; i += V::kWidth) kStore(target + i, kLoad(source + i));
  const auto rest = static_cast<uint64_t>(n - i);
  if (rest == 0) return;
  S in[V::kWidth] = {};
  D out[V::kWidth];
  __builtin_memcpy(in, source + i, rest * sizeof(S));
  kStore(out, kLoad(in));
  __builtin_memcpy(target + i, out, rest * sizeof(D));
}

template <class V>
typename V::F load_f32(const void* p) {
  return V::load(static_cast<const float*>(p));
}
template <class V>
void store_f32(void* p, typename V::F x) {
  V::store(static_cast<float*>(p), x);
}

/// Truncated to an integer of 8 or 16 bits: larger values become the end of its range, NaN 0.
template <class V, class T>
void store_saturated(void* p, typename V::F x) {
  constexpr float kSpan = static_cast<float>((1 << 8 * sizeof(T)) - 1), kLow = static_cast<T>(-1) < T{0} ? -(kSpan + 1) / 2 : 0.f;
  const auto number = V::blend(V::is_nan(x), V::set(0.f), x);
  V::template store_narrow<T>(p, clip<V>(number, V::set(kLow), V::set(kLow + kSpan)));
}

template <class V>
void to_bool_loop(const void* x, void* y, int64_t n) {
  const float* from = static_cast<const float*>(x);
  uint8_t* to = static_cast<uint8_t*>(y);
  const auto zero = V::set(0.f), one = V::set(1.f);
  for (int64_t i = 0; i < n; i += V::kWidth) {
    const int width = n - i < V::kWidth ? static_cast<int>(n - i) : V::kWidth;
    const auto set = V::blend(V::equal(V::load_n(from + i, width, 0.f), zero), zero, one);  // NaN is not zero
    V::store_bool(to + i, V::less(zero, set), width);
  }
}

template <class V>
CastLoop cast_loop_of(DType from, DType to) {
  if (to == DType::kFloat32) {
    switch (from) {
      case DType::kBFloat16: return &cast_loop<V, uint16_t, float, V::load_bf16, store_f32<V>>;
      case DType::kFloat16: return &cast_loop<V, uint16_t, float, V::load_f16, store_f32<V>>;
      case DType::kBool:
      case DType::kUInt8: return &cast_loop<V, uint8_t, float, V::load_u8, store_f32<V>>;
      case DType::kInt8: return &cast_loop<V, uint8_t, float, V::load_i8, store_f32<V>>;
      case DType::kInt32: return &cast_loop<V, int32_t, float, V::load_i32, store_f32<V>>;
      default: return nullptr;
    }
  }
  if (from == DType::kFloat32) {
    if (to == DType::kBFloat16) return &cast_loop<V, float, uint16_t, load_f32<V>, V::store_bf16>;
    if (to == DType::kInt32) return &cast_loop<V, float, int32_t, load_f32<V>, V::store_i32>;
    if (to == DType::kInt8) return &cast_loop<V, float, int8_t, load_f32<V>, store_saturated<V, int8_t>>;
    if (to == DType::kUInt8) return &cast_loop<V, float, uint8_t, load_f32<V>, store_saturated<V, uint8_t>>;
    if (to == DType::kInt16) return &cast_loop<V, float, int16_t, load_f32<V>, store_saturated<V, int16_t>>;
    if (to == DType::kUInt16) return &cast_loop<V, float, uint16_t, load_f32<V>, store_saturated<V, uint16_t>>;
    if (to == DType::kBool) return &to_bool_loop<V>;
    if constexpr (requires { &V::store_i64; }) {  // needs an instruction
      if (to == DType::kInt64) return &cast_loop<V, float, int64_t, load_f32<V>, V::store_i64>;
    }
    if constexpr (requires { &V::store_f16; }) {  // needs an instruction
      if (to == DType::kFloat16) return &cast_loop<V, float, uint16_t, load_f32<V>, V::store_f16>;
    }
  }
  return nullptr;
}

}  // namespace serin::kernels::cpu
