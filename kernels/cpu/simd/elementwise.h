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
  if constexpr (kFn == UnaryFn::kAbs)
    return V::abs(x);
  else if constexpr (kFn == UnaryFn::kNeg)
    return -x;
  else if constexpr (kFn == UnaryFn::kSign)
    return V::blend(V::less(zero, x), one, V::blend(V::less(x, zero), -one, x));
  else if constexpr (kFn == UnaryFn::kReciprocal)
    return one / x;
  else if constexpr (kFn == UnaryFn::kSqrt)
    return V::sqrt(x);
  else if constexpr (kFn == UnaryFn::kExp)
    return math::exp<V>(x);
  else if constexpr (kFn == UnaryFn::kLog)
    return math::log<V>(x);
  else if constexpr (kFn == UnaryFn::kErf)
    return math::erf<V>(x);
  else if constexpr (kFn == UnaryFn::kSin)
    return of_angle<V>(x, math::sin<V>(x), [](float angle) { return __builtin_sinf(angle); });
  else if constexpr (kFn == UnaryFn::kCos)
    return of_angle<V>(x, math::cos<V>(x), [](float angle) { return __builtin_cosf(angle); });
  else if constexpr (kFn == UnaryFn::kTan)
    return of_angle<V>(x, math::tan<V>(x), [](float angle) { return __builtin_tanf(angle); });
  else if constexpr (kFn == UnaryFn::kAsin)
    return math::asin<V>(x);
  else if constexpr (kFn == UnaryFn::kAcos)
    return math::acos<V>(x);
  else if constexpr (kFn == UnaryFn::kAtan)
    return math::atan<V>(x);
  else if constexpr (kFn == UnaryFn::kSinh)
    return math::sinh<V>(x);
  else if constexpr (kFn == UnaryFn::kCosh)
    return math::cosh<V>(x);
  else if constexpr (kFn == UnaryFn::kAsinh)
    return math::asinh<V>(x);
  else if constexpr (kFn == UnaryFn::kAcosh)
    return math::acosh<V>(x);
  else if constexpr (kFn == UnaryFn::kAtanh)
    return math::atanh<V>(x);
  else if constexpr (kFn == UnaryFn::kTanh)
    return math::tanh<V>(x);
  else if constexpr (kFn == UnaryFn::kSigmoid)
    return math::sigmoid<V>(x);
  else if constexpr (kFn == UnaryFn::kRelu)
    return V::max(zero, x);
  else if constexpr (kFn == UnaryFn::kLeakyRelu)
    return V::blend(V::less(x, zero), alpha * x, x);
  else if constexpr (kFn == UnaryFn::kClip)
    return clip<V>(x, alpha, beta);
  else if constexpr (kFn == UnaryFn::kElu)
    return V::blend(V::less(x, zero), alpha * math::expm1<V>(x), x);
  else if constexpr (kFn == UnaryFn::kSelu)
    return beta * V::blend(V::less(x, zero), alpha * math::expm1<V>(x), x);
  else if constexpr (kFn == UnaryFn::kCelu)
    return V::blend(V::less(x, zero), alpha * math::expm1<V>(x / alpha), x);
  else if constexpr (kFn == UnaryFn::kThresholdedRelu)
    return V::blend(V::less_equal(x, alpha), zero, x);
  else if constexpr (kFn == UnaryFn::kSoftplus)
    return math::softplus<V>(x);
  else if constexpr (kFn == UnaryFn::kSoftsign)
    return softsign<V>(x);
  else if constexpr (kFn == UnaryFn::kMish)
    return math::mish<V>(x);
  else if constexpr (kFn == UnaryFn::kHardSigmoid)
    return clip<V>(alpha * x + beta, zero, one);
  else if constexpr (kFn == UnaryFn::kHardSwish)
    return x * clip<V>(V::fma(x, V::set(1.f / 6.f), V::set(0.5f)), zero, one);
  else if constexpr (kFn == UnaryFn::kSilu)
    return math::silu<V>(x);
  else if constexpr (kFn == UnaryFn::kGelu)
    return math::gelu<V>(x);
  else if constexpr (kFn == UnaryFn::kGeluTanh)
    return math::gelu_tanh<V>(x);
  else if constexpr (kFn == UnaryFn::kFloor)
    return V::floor(x);
  else if constexpr (kFn == UnaryFn::kCeil)
    return V::ceil(x);
  else if constexpr (kFn == UnaryFn::kRound)
    return V::round(x);
  else
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
    case UnaryFn::kIdentity: return &unary_loop<V, UnaryFn::kIdentity>;
    case UnaryFn::kAbs: return &unary_loop<V, UnaryFn::kAbs>;
    case UnaryFn::kNeg: return &unary_loop<V, UnaryFn::kNeg>;
    case UnaryFn::kSign: return &unary_loop<V, UnaryFn::kSign>;
    case UnaryFn::kReciprocal: return &unary_loop<V, UnaryFn::kReciprocal>;
    case UnaryFn::kSqrt: return &unary_loop<V, UnaryFn::kSqrt>;
    case UnaryFn::kExp: return &unary_loop<V, UnaryFn::kExp>;
    case UnaryFn::kLog: return &unary_loop<V, UnaryFn::kLog>;
    case UnaryFn::kErf: return &unary_loop<V, UnaryFn::kErf>;
    case UnaryFn::kSin: return &unary_loop<V, UnaryFn::kSin>;
    case UnaryFn::kCos: return &unary_loop<V, UnaryFn::kCos>;
    case UnaryFn::kTan: return &unary_loop<V, UnaryFn::kTan>;
    case UnaryFn::kAsin: return &unary_loop<V, UnaryFn::kAsin>;
    case UnaryFn::kAcos: return &unary_loop<V, UnaryFn::kAcos>;
    case UnaryFn::kAtan: return &unary_loop<V, UnaryFn::kAtan>;
    case UnaryFn::kSinh: return &unary_loop<V, UnaryFn::kSinh>;
    case UnaryFn::kCosh: return &unary_loop<V, UnaryFn::kCosh>;
    case UnaryFn::kAsinh: return &unary_loop<V, UnaryFn::kAsinh>;
    case UnaryFn::kAcosh: return &unary_loop<V, UnaryFn::kAcosh>;
    case UnaryFn::kAtanh: return &unary_loop<V, UnaryFn::kAtanh>;
    case UnaryFn::kTanh: return &unary_loop<V, UnaryFn::kTanh>;
    case UnaryFn::kSigmoid: return &unary_loop<V, UnaryFn::kSigmoid>;
    case UnaryFn::kRelu: return &unary_loop<V, UnaryFn::kRelu>;
    case UnaryFn::kLeakyRelu: return &unary_loop<V, UnaryFn::kLeakyRelu>;
    case UnaryFn::kClip: return &unary_loop<V, UnaryFn::kClip>;
    case UnaryFn::kElu: return &unary_loop<V, UnaryFn::kElu>;
    case UnaryFn::kSelu: return &unary_loop<V, UnaryFn::kSelu>;
    case UnaryFn::kCelu: return &unary_loop<V, UnaryFn::kCelu>;
    case UnaryFn::kThresholdedRelu: return &unary_loop<V, UnaryFn::kThresholdedRelu>;
    case UnaryFn::kSoftplus: return &unary_loop<V, UnaryFn::kSoftplus>;
    case UnaryFn::kSoftsign: return &unary_loop<V, UnaryFn::kSoftsign>;
    case UnaryFn::kMish: return &unary_loop<V, UnaryFn::kMish>;
    case UnaryFn::kHardSigmoid: return &unary_loop<V, UnaryFn::kHardSigmoid>;
    case UnaryFn::kHardSwish: return &unary_loop<V, UnaryFn::kHardSwish>;
    case UnaryFn::kSilu: return &unary_loop<V, UnaryFn::kSilu>;
    case UnaryFn::kGelu: return &unary_loop<V, UnaryFn::kGelu>;
    case UnaryFn::kGeluTanh: return &unary_loop<V, UnaryFn::kGeluTanh>;
    case UnaryFn::kFloor: return &unary_loop<V, UnaryFn::kFloor>;
    case UnaryFn::kCeil: return &unary_loop<V, UnaryFn::kCeil>;
    case UnaryFn::kRound: return &unary_loop<V, UnaryFn::kRound>;
    case UnaryFn::kNot:  // these return bool
    case UnaryFn::kIsNaN:
    case UnaryFn::kIsInf: break;
  }
  return nullptr;
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
  if constexpr (kFn == BinaryFn::kAdd)
    store(a + b);
  else if constexpr (kFn == BinaryFn::kSub)
    store(a - b);
  else if constexpr (kFn == BinaryFn::kMul)
    store(a * b);
  else if constexpr (kFn == BinaryFn::kDiv)
    store(a / b);
  else if constexpr (kFn == BinaryFn::kPow)
    store(power<V>(a, b));
  else if constexpr (kFn == BinaryFn::kMin)
    store(min_nan<V>(a, b));
  else if constexpr (kFn == BinaryFn::kMax)
    store(max_nan<V>(a, b));
  else if constexpr (kFn == BinaryFn::kEqual)
    V::store_bool(out_bool, V::equal(a, b), n);
  else if constexpr (kFn == BinaryFn::kLess)
    V::store_bool(out_bool, V::less(a, b), n);
  else if constexpr (kFn == BinaryFn::kLessOrEqual)
    V::store_bool(out_bool, V::less_equal(a, b), n);
  else if constexpr (kFn == BinaryFn::kGreater)
    V::store_bool(out_bool, V::less(b, a), n);
  else if constexpr (kFn == BinaryFn::kGreaterOrEqual)
    V::store_bool(out_bool, V::less_equal(b, a), n);
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
    case BinaryFn::kAdd: return &binary_loop<V, BinaryFn::kAdd>;
    case BinaryFn::kSub: return &binary_loop<V, BinaryFn::kSub>;
    case BinaryFn::kMul: return &binary_loop<V, BinaryFn::kMul>;
    case BinaryFn::kDiv: return &binary_loop<V, BinaryFn::kDiv>;
    case BinaryFn::kMin: return &binary_loop<V, BinaryFn::kMin>;
    case BinaryFn::kMax: return &binary_loop<V, BinaryFn::kMax>;
    case BinaryFn::kEqual: return &binary_loop<V, BinaryFn::kEqual>;
    case BinaryFn::kLess: return &binary_loop<V, BinaryFn::kLess>;
    case BinaryFn::kLessOrEqual: return &binary_loop<V, BinaryFn::kLessOrEqual>;
    case BinaryFn::kGreater: return &binary_loop<V, BinaryFn::kGreater>;
    case BinaryFn::kGreaterOrEqual: return &binary_loop<V, BinaryFn::kGreaterOrEqual>;
    case BinaryFn::kPow: return &binary_loop<V, BinaryFn::kPow>;
    case BinaryFn::kMod:  // that of the reference kernel

    case BinaryFn::kFMod:
    case BinaryFn::kAnd:
    case BinaryFn::kOr:
    case BinaryFn::kXor: break;
  }
  return nullptr;
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
