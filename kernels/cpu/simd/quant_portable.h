// quant_portable.h: Quantised arithmetic in plain C++ with four sums at a time, for other machines than x86 and as the definition of the
// vector files.
#pragma once

#include <cmath>
#include <cstdint>

namespace serin::kernels::cpu {

template <class V>
struct PackSingly;

struct QuantVecPortable {
  using Packing = PackSingly<QuantVecPortable>;
  static constexpr int kLanes = 4;
  typedef int32_t I __attribute__((vector_size(16)));
  typedef float F __attribute__((vector_size(16)));
  using Weight = int16_t;
  static constexpr int kBytes = 16;
  static constexpr int kGroup = 2;
  static constexpr int kRows = 2;
  static constexpr int kVectors = 2;

  static I zero() { return I{}; }
  static I set(int32_t x) { return I{x, x, x, x}; }
  static F setf(float x) { return F{x, x, x, x}; }
  static I load_weights(const char* p) {
    I result;
    __builtin_memcpy(&result, p, sizeof result);
    return result;
  }
  /// Two bytes as two numbers of 16 bits.
  template <bool kFlip>
  static I broadcast(const uint8_t* p) {
    const int32_t low = kFlip ? p[0] ^ 0x80 : p[0], high = kFlip ? p[1] ^ 0x80 : p[1];
    return set(low | high << 16);
  }
  static I dot(I sum, I x, I w) {
    for (int i = 0; i < kLanes; ++i)
      sum[i] += (x[i] & 0xffff) * static_cast<int16_t>(w[i] & 0xffff) + (x[i] >> 16) * static_cast<int16_t>(w[i] >> 16);
    return sum;
  }
  static I add(I a, I b) {
    return wrap(a, b, [](uint32_t x, uint32_t y) { return x + y; });
  }
  static I sub(I a, I b) {
    return wrap(a, b, [](uint32_t x, uint32_t y) { return x - y; });
  }
  static I multiply(I a, I b) {
    return wrap(a, b, [](uint32_t x, uint32_t y) { return x * y; });
  }
  static I min(I a, I b) { return a < b ? a : b; }
  static I max(I a, I b) { return a > b ? a : b; }
  static F maxf(F a, F b) { return a > b ? a : b; }
  static F minf(F a, F b) { return a < b ? a : b; }
  static F divide(F a, F b) { return a / b; }
  static F to_float(I x) { return __builtin_convertvector(x, F); }
  /// To the nearest integer, ties to even.
  static I round(F x) {
    I result;
    for (int i = 0; i < kLanes; ++i) result[i] = static_cast<int32_t>(__builtin_nearbyintf(x[i]));
    return result;
  }
  static F whole(F x) { return to_float(round(x)); }
  static F nan_as_zero(F x) { return x == x ? x : F{}; }

  static I load_ints(const int32_t* p, int n) {
    I result{};
    for (int i = 0; i < lanes(n); ++i) result[i] = p[i];
    return result;
  }
  static void store_ints(int32_t* p, I x, int n) {
    for (int i = 0; i < lanes(n); ++i) p[i] = x[i];
  }
  static F load_floats(const float* p, int n) {
    F result{};
    for (int i = 0; i < lanes(n); ++i) result[i] = p[i];
    return result;
  }
  static void store_floats(float* p, F x, int n) {
    for (int i = 0; i < lanes(n); ++i) p[i] = x[i];
  }
  static I load_bytes(const uint8_t* p, bool is_signed, int n) {
    I result{};
    for (int i = 0; i < lanes(n); ++i) result[i] = is_signed ? static_cast<int8_t>(p[i]) : p[i];
    return result;
  }
  static void store_bytes(uint8_t* p, I x, int n) {
    for (int i = 0; i < lanes(n); ++i) p[i] = static_cast<uint8_t>(x[i]);
  }
  static float least(F x) {
    float result = x[0];
    for (int i = 1; i < kLanes; ++i) result = x[i] < result ? x[i] : result;
    return result;
  }
  static float most(F x) { return -least(-x); }

 private:
  static int lanes(int n) { return n < kLanes ? n : kLanes; }
  template <class Fn>
  static I wrap(I a, I b, Fn fn) {
    I result;
    for (int i = 0; i < kLanes; ++i) result[i] = static_cast<int32_t>(fn(static_cast<uint32_t>(a[i]), static_cast<uint32_t>(b[i])));
    return result;
  }
};

}  // namespace serin::kernels::cpu
