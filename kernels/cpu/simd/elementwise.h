// elementwise.h: loops over arrays of floats: one function of one or two operands at a time, and conversions.
#pragma once

#include "kernels/cpu/simd/math.h"
#include "kernels/cpu/simd/simd.h"

namespace serin::kernels::cpu {

/// min(max(x, low), high); NaN stays, because max and min answer their second operand for it.
template <class V>
typename V::F clip(typename V::F x, typename V::F low, typename V::F high) {
  return V::min(high, V::max(low, x));
}

template <class V, UnaryFn kFn>
typename V::F unary_value(typename V::F x, typename V::F alpha, typename V::F beta) {
  const auto zero = V::set(0.f), one = V::set(1.f);
  if constexpr (kFn == UnaryFn::kAbs)
    return V::abs(x);
  else if constexpr (kFn == UnaryFn::kNeg)
    return -x;
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
    return V::blend(V::less(x, zero), alpha * math::expm1_negative<V>(x), x);
  else if constexpr (kFn == UnaryFn::kSoftplus)
    return math::softplus<V>(x);
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
    case UnaryFn::kReciprocal: return &unary_loop<V, UnaryFn::kReciprocal>;
    case UnaryFn::kSqrt: return &unary_loop<V, UnaryFn::kSqrt>;
    case UnaryFn::kExp: return &unary_loop<V, UnaryFn::kExp>;
    case UnaryFn::kLog: return &unary_loop<V, UnaryFn::kLog>;
    case UnaryFn::kErf: return &unary_loop<V, UnaryFn::kErf>;
    case UnaryFn::kTanh: return &unary_loop<V, UnaryFn::kTanh>;
    case UnaryFn::kSigmoid: return &unary_loop<V, UnaryFn::kSigmoid>;
    case UnaryFn::kRelu: return &unary_loop<V, UnaryFn::kRelu>;
    case UnaryFn::kLeakyRelu: return &unary_loop<V, UnaryFn::kLeakyRelu>;
    case UnaryFn::kClip: return &unary_loop<V, UnaryFn::kClip>;
    case UnaryFn::kElu: return &unary_loop<V, UnaryFn::kElu>;
    case UnaryFn::kSoftplus: return &unary_loop<V, UnaryFn::kSoftplus>;
    case UnaryFn::kHardSigmoid: return &unary_loop<V, UnaryFn::kHardSigmoid>;
    case UnaryFn::kHardSwish: return &unary_loop<V, UnaryFn::kHardSwish>;
    case UnaryFn::kSilu: return &unary_loop<V, UnaryFn::kSilu>;
    case UnaryFn::kGelu: return &unary_loop<V, UnaryFn::kGelu>;
    case UnaryFn::kGeluTanh: return &unary_loop<V, UnaryFn::kGeluTanh>;
    case UnaryFn::kFloor: return &unary_loop<V, UnaryFn::kFloor>;
    case UnaryFn::kCeil: return &unary_loop<V, UnaryFn::kCeil>;
    case UnaryFn::kRound: return &unary_loop<V, UnaryFn::kRound>;
    case UnaryFn::kSign:  // rare, or answering bool: the reference kernel's
    case UnaryFn::kSin:
    case UnaryFn::kCos:
    case UnaryFn::kNot:
    case UnaryFn::kIsNaN:
    case UnaryFn::kIsInf: break;
  }
  return nullptr;
}

/// max(a, b) where a NaN on either side wins; V::max alone would drop one in `a`.
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
    case BinaryFn::kPow:
    case BinaryFn::kMod:
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

/// Conversions go whole vectors at a time; the last, partial one through buffers on the stack. kLoad and kStore convert kWidth elements.
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
    if constexpr (requires { &V::store_f16; }) {  // needs an instruction
      if (to == DType::kFloat16) return &cast_loop<V, float, uint16_t, load_f32<V>, V::store_f16>;
    }
  }
  return nullptr;
}

}  // namespace serin::kernels::cpu
