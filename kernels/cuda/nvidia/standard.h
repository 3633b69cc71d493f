// standard.h: The part of the C++ standard library that kernels compiled at run time use, where there is none (run_time.h).
//
// It covers <bit>, <cmath>, <cstdint>, <limits> and <type_traits>. Functions of floats are those that nvcc's own library calls.
#pragma once

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;
#define INT32_MAX 2147483647

namespace std {

template <class T, T kValue>
struct integral_constant {
  static constexpr T value = kValue;
};

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;

template <bool kFirst, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool kFirst, class A, class B>
using conditional_t = typename conditional<kFirst, A, B>::type;

template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
inline constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, int8_t> || is_same_v<T, int16_t> || is_same_v<T, int32_t> || is_same_v<T, int64_t> ||
    is_same_v<T, uint8_t> || is_same_v<T, uint16_t> || is_same_v<T, uint32_t> || is_same_v<T, uint64_t>;
template <class T>
inline constexpr bool is_unsigned_v = is_integral_v<T> && T(-1) > T(0);
template <class T>
inline constexpr bool is_signed_v = is_floating_point_v<T> || (is_integral_v<T> && !is_unsigned_v<T>);

template <class T>
using make_unsigned_t =
    conditional_t<sizeof(T) == 1, uint8_t, conditional_t<sizeof(T) == 2, uint16_t, conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T>
struct numeric_limits {
  static constexpr T max() { return is_unsigned_v<T> ? T(-1) : T((uint64_t{1} << (8 * sizeof(T) - 1)) - 1); }
  static constexpr T min() { return is_unsigned_v<T> ? T(0) : T(-max() - 1); }
};
template <class To, class From>
constexpr To bit_cast(From from) {
  return __builtin_bit_cast(To, from);
}
template <>
struct numeric_limits<float> {
  static constexpr float infinity() { return bit_cast<float>(0x7f800000u); }
};
template <>
struct numeric_limits<double> {
  static constexpr double infinity() { return bit_cast<double>(uint64_t{0x7ff} << 52); }
};

constexpr int countl_zero(uint32_t x) {
  int zeros = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0 && !(x & bit); bit >>= 1) ++zeros;
  return zeros;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}

inline float copysign(float x, float y) { return ::copysignf(x, y); }
inline double copysign(double x, double y) { return ::copysign(x, y); }
inline float fmod(float x, float y) { return ::fmodf(x, y); }
inline double fmod(double x, double y) { return ::fmod(x, y); }
inline float pow(float x, float y) { return ::powf(x, y); }
inline double pow(double x, double y) { return ::pow(x, y); }
inline bool isinf(float x) { return x - x != 0 && x == x; }
inline bool isinf(double x) { return x - x != 0 && x == x; }

#define SERIN_MATH(name)                              \
  inline float name(float x) { return ::name##f(x); } \
  inline double name(double x) { return ::name(x); }
SERIN_MATH(acos)
SERIN_MATH(acosh)
SERIN_MATH(asin)
SERIN_MATH(asinh)
SERIN_MATH(atan)
SERIN_MATH(atanh)
SERIN_MATH(ceil)
SERIN_MATH(cos)
SERIN_MATH(cosh)
SERIN_MATH(erf)
SERIN_MATH(erfc)
SERIN_MATH(exp)
SERIN_MATH(expm1)
SERIN_MATH(fabs)
SERIN_MATH(floor)
SERIN_MATH(log)
SERIN_MATH(log1p)
SERIN_MATH(nearbyint)
SERIN_MATH(sin)
SERIN_MATH(sinh)
SERIN_MATH(sqrt)
SERIN_MATH(tan)
SERIN_MATH(tanh)
#undef SERIN_MATH

}  // namespace std
