// functors.h: The definition of each function of single elements, once, for every backend: the scalar forms of functions.def.
//
// The reference kernels call these on the host; a device kernel may call them too. They are templates over the type of the computation
// (float, double or an integer; 16-bit floats compute in float).
//
// No input of a model or a client traps or is undefined:
//   - integers wrap on overflow, as NumPy's do; INT_MIN / -1 is INT_MIN;
//   - integer division and remainder by zero give 0;
//   - a negative power of an integer is the truncated quotient: 1 for 1, +-1 for -1, else 0;
//   - float to integer truncates and saturates, NaN gives 0; integer to a narrower integer wraps.
// NaN: every function of a NaN is a NaN, including Min, Max, Clip and Relu; compares with NaN are false.
// -0: Relu keeps it; Min and Max of -0 and +0 give the second operand.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/float16.h"
#include "kernels/functions.h"

namespace serin::kernels {

template <class T>
inline constexpr bool kIsHalfKind = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsFloatKind = std::is_floating_point_v<T> || kIsHalfKind<T>;

/// The type in which elements of T are computed.
template <class T>
using compute_t = std::conditional_t<kIsHalfKind<T>, float, T>;

/// The unsigned integer in which integers of T wrap.
template <class T>
using wrap_t = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;

template <class T>
SERIN_HD inline compute_t<T> load(T x) {
  if constexpr (kIsHalfKind<T>)
    return to_float(x);
  else
    return x;
}

template <class D, class F>
SERIN_HD inline D float_to_integer(F x) {
  if (x != x) return 0;
  constexpr F kAbove = static_cast<F>(std::numeric_limits<D>::max() / 2 + 1) * 2;  // max + 1: a power of two, exact in every F
  if (x >= kAbove) return std::numeric_limits<D>::max();
  if (x <= static_cast<F>(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
  return static_cast<D>(x);
}

/// Any element type to any other.
template <class D, class S>
SERIN_HD inline D cast(S x) {
  if constexpr (std::is_same_v<D, S>)
    return x;
  else if constexpr (kIsHalfKind<S>)
    return cast<D>(to_float(x));
  else if constexpr (std::is_same_v<D, bool>)
    return x != S{0};
  else if constexpr (std::is_same_v<D, Half>)
    return to_half(static_cast<std::conditional_t<std::is_same_v<S, float>, float, double>>(x));
  else if constexpr (std::is_same_v<D, BFloat16>)
    return to_bfloat16(static_cast<std::conditional_t<std::is_same_v<S, float>, float, double>>(x));
  else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>)
    return float_to_integer<D>(x);
  else
    return static_cast<D>(x);
}

/// cast, except that finite values stay finite: at the ends of a floating point D.
template <class D, class S>
SERIN_HD inline D saturate(S x) {
  if constexpr (kIsHalfKind<S>) {
    return saturate<D>(to_float(x));
  } else if constexpr (kIsHalfKind<D> && !std::is_same_v<S, bool>) {
    constexpr float kLargest = std::is_same_v<D, Half> ? 65504.f : 0x1.FEp127f;
    const auto limit = static_cast<std::conditional_t<std::is_same_v<S, float>, float, double>>(kLargest);
    const auto value = static_cast<decltype(limit)>(x);
    if (value - value != 0) return cast<D>(x);  // Inf, NaN
    return cast<D>(value > limit ? limit : value < -limit ? -limit : value);
  } else {
    return cast<D>(x);
  }
}

// ---- y = f(x) ----

/// 0.5 x (1 + erf(x / sqrt 2)), through erfc: 1 + erf cancels for negative x.
template <class C>
SERIN_HD inline C gelu(C x) {
  return C(0.5) * x * std::erfc(-x * C(0.70710678118654752440));
}

template <class C>
SERIN_HD inline C sigmoid(C x) {
  const C z = std::exp(-std::fabs(x));  // never overflows
  return (x < 0 ? z : C(1)) / (C(1) + z);
}

template <class C>
SERIN_HD inline C gelu_tanh(C x) {  // 0.5 x (1 + tanh(u)) = x sigmoid(2 u)
  const C u = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x);
  return x * sigmoid(C(2) * u);
}

/// x tanh(log(1 + e)), e = exp(x), as x (e^2 + 2 e) / (e^2 + 2 e + 2): nothing cancels.
template <class C>
SERIN_HD inline C mish(C x) {
  if (x > 30) return x;
  const C e = std::exp(x), n = e * (e + C(2));
  return x * (n / (n + C(2)));
}

/// min(max(x, low), high), in this order: low > high gives high, NaN stays.
template <class C>
SERIN_HD inline C clip(C x, C low, C high) {
  const C y = x < low ? low : x;
  return y > high ? high : y;
}

template <class C>
SERIN_HD inline C negate(C x) {
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(wrap_t<C>(0) - static_cast<wrap_t<C>>(x));
  else
    return -x;
}

template <class C>
SERIN_HD inline C sign(C x) {
  if constexpr (std::is_unsigned_v<C>)
    return x != 0;
  else
    return x > 0 ? C(1) : x < 0 ? C(-1) : x;  // keeps NaN and -0
}

/// `direction` > 0: +Inf only, < 0: -Inf only, 0: both.
template <class C>
SERIN_HD inline bool is_infinite(C x, float direction) {
  if constexpr (std::is_floating_point_v<C>) {
    constexpr C kInf = std::numeric_limits<C>::infinity();
    return (direction >= 0 && x == kInf) || (direction <= 0 && x == -kInf);
  } else {
    return false;
  }
}

/// Whether `fn` has a meaning for elements of T (bool: only Identity and Not).
template <class T>
constexpr bool unary_accepts(UnaryFn fn) {
  switch (facts_of(fn).types) {
    case UnaryTypes::kEvery: return true;
    case UnaryTypes::kTruth: return std::is_same_v<T, bool>;
    case UnaryTypes::kNumber: return !std::is_same_v<T, bool>;
    default: return kIsFloatKind<T>;
  }
}

template <class C>
SERIN_HD inline bool unary_predicate(UnaryFn fn, C x, float alpha) {
#define SERIN_TRUTH_FN(name, word, a, b, epilogue, chain, finite, scalar, ...) \
  case UnaryFn::k##name: return scalar;
#define SERIN_TEST_FN SERIN_TRUTH_FN
  switch (fn) {
#include "kernels/functions.def"
    default: return false;
  }
}

/// Functions that only floating point types have.
template <class C>
SERIN_HD inline C unary_float(UnaryFn fn, C x, C alpha, C beta) {
#define SERIN_FLOAT_FN(name, word, a, b, epilogue, chain, finite, scalar, ...) \
  case UnaryFn::k##name: return scalar;
  switch (fn) {
#include "kernels/functions.def"
    default: return x;
  }
}

/// y = fn(x) for a C that is not bool. `alpha`, `beta`: kernels/op.h.
template <class C>
SERIN_HD inline C unary(UnaryFn fn, C x, float alpha, float beta) {
#define SERIN_ANY_FN(name, word, a, b, epilogue, chain, finite, scalar, ...) \
  case UnaryFn::k##name: return scalar;
#define SERIN_NUMBER_FN SERIN_ANY_FN
  switch (fn) {
#include "kernels/functions.def"
    default: break;
  }
  if constexpr (std::is_floating_point_v<C>)
    return unary_float(fn, x, C(alpha), C(beta));
  else
    return x;
}

// ---- y = f(a, b) ----

template <class C>
SERIN_HD inline C divide(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<C>) {
      if (b == -1) return negate(a);
    }
    return static_cast<C>(a / b);
  } else {
    return a / b;
  }
}

/// The remainder with the sign of the dividend, as C's % and fmod.
template <class C>
SERIN_HD inline C remainder_of_dividend(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    return std::fmod(a, b);
  else if constexpr (std::is_signed_v<C>)
    return b == 0 || b == -1 ? C(0) : static_cast<C>(a % b);
  else
    return b == 0 ? C(0) : static_cast<C>(a % b);
}

/// The remainder with the sign of the divisor, as Python's %.
template <class C>
SERIN_HD inline C remainder_of_divisor(C a, C b) {
  const C r = remainder_of_dividend(a, b);
  if constexpr (std::is_floating_point_v<C>) {
    if (r == 0) return std::copysign(C(0), b);
  }
  return r != 0 && (r < 0) != (b < 0) ? static_cast<C>(r + b) : r;
}

template <class C>
SERIN_HD inline C power(C base, C exponent) {
  if constexpr (std::is_floating_point_v<C>) {
    return std::pow(base, exponent);
  } else {
    if (exponent < 0) return base == 1 ? C(1) : base == static_cast<C>(-1) ? (exponent % 2 == 0 ? C(1) : static_cast<C>(-1)) : C(0);
    uint64_t result = 1;  // wraps; the low bits are those of C's own wrapping
    uint64_t square = static_cast<uint64_t>(base);
    for (uint64_t bits = static_cast<uint64_t>(exponent); bits != 0; bits >>= 1, square *= square) {
      if (bits & 1) result *= square;
    }
    return static_cast<C>(result);
  }
}

template <class C>
SERIN_HD inline C minimum(C a, C b) {
  return a < b || a != a ? a : b;
}

template <class C>
SERIN_HD inline C maximum(C a, C b) {
  return a > b || a != a ? a : b;
}

/// Whether `fn` has a meaning for elements of T (bool: Equal, And, Or, Xor).
template <class T>
constexpr bool binary_accepts(BinaryFn fn) {
  if constexpr (std::is_same_v<T, bool>)
    return is_logical(fn) || fn == BinaryFn::kEqual;
  else
    return !is_logical(fn);
}

/// The functions that return bool.
template <class C>
SERIN_HD inline bool binary_predicate(BinaryFn fn, C a, C b) {
#define SERIN_COMPARE_FN(name, loop, chain, finite, scalar, vector) \
  case BinaryFn::k##name: return scalar;
#define SERIN_LOGICAL_FN SERIN_COMPARE_FN
  switch (fn) {
#include "kernels/functions.def"
    default: return false;
  }
}

/// y = fn(a, b) for a C that is not bool.
template <class C>
SERIN_HD inline C binary(BinaryFn fn, C a, C b) {
  // Sums, differences and products of integers wrap: computed unsigned, in 64 bits so that no promotion to int can overflow.
  using W = std::conditional_t<std::is_integral_v<C>, uint64_t, C>;
#define SERIN_ARITHMETIC_FN(name, loop, chain, finite, scalar, vector) \
  case BinaryFn::k##name: return scalar;
  switch (fn) {
#include "kernels/functions.def"
    default: return a;
  }
}

}  // namespace serin::kernels
