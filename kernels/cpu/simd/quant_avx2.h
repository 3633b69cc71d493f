// quant_avx2.h: Quantised arithmetic with eight sums in a register.
//
// Products of bytes are computed as pairs of 16 bits (vpmaddwd), because the instruction for bytes saturates.
#pragma once

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd/vec_avx2.h"

namespace serin::kernels::cpu {

template <class V>
struct PackSingly;
template <class V, int kRows, bool kFlip>
struct TileRows;

struct QuantVecAvx2 {
  using Packing = PackSingly<QuantVecAvx2>;
  using I = __m256i;
  using F = __m256;
  using Weight = int16_t;
  static constexpr int kLanes = 8;
  static constexpr int kBytes = 32;
  static constexpr int kGroup = 2;
  static constexpr int kRows = 6;  // x 2 vectors: 12 accumulators, 2 vectors of weights, one broadcast, one product
  static constexpr int kVectors = 2;

  static I zero() { return _mm256_setzero_si256(); }
  static I set(int32_t x) { return _mm256_set1_epi32(x); }
  static F setf(float x) { return _mm256_set1_ps(x); }
  static I load_weights(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const I*>(p)); }
  /// Both instructions together: GCC 12 otherwise computes all products of a tile before the sums, which then do not fit the registers.
  static I dot(I sum, I x, I w) {
    I product;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(x), "x"(w));
    return sum;
  }

  static I add(I a, I b) { return _mm256_add_epi32(a, b); }
  static I sub(I a, I b) { return _mm256_sub_epi32(a, b); }
  static I multiply(I a, I b) { return _mm256_mullo_epi32(a, b); }
  static I min(I a, I b) { return _mm256_min_epi32(a, b); }
  static I max(I a, I b) { return _mm256_max_epi32(a, b); }
  static F maxf(F a, F b) { return _mm256_max_ps(a, b); }
  static F minf(F a, F b) { return _mm256_min_ps(a, b); }
  static F divide(F a, F b) { return _mm256_div_ps(a, b); }
  static F to_float(I x) { return _mm256_cvtepi32_ps(x); }
  static I round(F x) { return _mm256_cvtps_epi32(x); }
  static F whole(F x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F nan_as_zero(F x) { return _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q)); }

  static I load_ints(const int32_t* p, int n) { return _mm256_castps_si256(load_floats(reinterpret_cast<const float*>(p), n)); }
  static void store_ints(int32_t* p, I x, int n) { store_floats(reinterpret_cast<float*>(p), _mm256_castsi256_ps(x), n); }
  static F load_floats(const float* p, int n) { return VecAvx2::load_n(p, n, 0.f); }
  static void store_floats(float* p, F x, int n) { VecAvx2::store_n(p, x, n); }
  static I load_bytes(const uint8_t* p, bool is_signed, int n) {
    uint64_t bits = 0;
    if (n >= kLanes)
      std::memcpy(&bits, p, sizeof bits);
    else
      for (int i = n; i-- > 0;) bits = bits << 8 | p[i];
    const __m128i bytes = _mm_cvtsi64_si128(static_cast<int64_t>(bits));
    return is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  }
  /// The low bytes.
  static void store_bytes(uint8_t* p, I x, int n) {
    const I low = _mm256_shuffle_epi8(x, _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                                          0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const auto first_half = static_cast<uint32_t>(_mm256_extract_epi32(low, 0)),
               second_half = static_cast<uint32_t>(_mm256_extract_epi32(low, 4));
    uint64_t bits = uint64_t{second_half} << 32 | first_half;
    if (n >= kLanes)
      std::memcpy(p, &bits, sizeof bits);
    else
      for (int i = 0; i < n; ++i, bits >>= 8) p[i] = static_cast<uint8_t>(bits);
  }
  static float least(F x) {
    float lanes[kLanes];
    _mm256_storeu_ps(lanes, x);
    float result = lanes[0];
    for (int i = 1; i < kLanes; ++i) result = lanes[i] < result ? lanes[i] : result;
    return result;
  }
  static float most(F x) { return -least(_mm256_sub_ps(_mm256_setzero_ps(), x)); }
};

/// For weights of seven bits. 255 * 64 + 255 * 64 fits 16 bits, so the instruction that multiplies bytes and adds pairs is exact.
struct QuantVecAvx2Narrow : QuantVecAvx2 {
  using Packing = PackSingly<QuantVecAvx2Narrow>;
  using Weight = int8_t;
  static constexpr int kGroup = 4;
  static constexpr int kRows = 5;  // leaves registers for the products and for the vector of ones

  template <bool kFlip>
  static I broadcast(const uint8_t* p) {
    int32_t group;
    std::memcpy(&group, p, sizeof group);
    return _mm256_set1_epi32(kFlip ? group ^ static_cast<int32_t>(0x80808080) : group);
  }
  static I dot(I sum, I x, I w) {
    I product;
    asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
        : "+x"(sum), "=&x"(product)
        : "x"(x), "x"(w), "x"(_mm256_set1_epi16(1)));
    return sum;
  }
};

/// Widens the bytes of a tile's rows once for all columns: to build each pair from two bytes took more instructions than its products.
template <int kRows, bool kFlip>
struct TileRows<QuantVecAvx2, kRows, kFlip> {
  static constexpr int64_t kSteps = 256;  // of all rows: 6 KiB
  alignas(32) int16_t pairs[kRows][2 * kSteps];

  void read(const uint8_t* const (&from)[kRows], int64_t first, int64_t steps) {
    const int64_t n = 2 * steps;
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* const row = from[r] + 2 * first;
      int64_t i = 0;
      for (; i + 16 <= n; i += 16) widen(row, r, i);
      if (i < n && n >= 16) widen(row, r, n - 16);  // repeats some
      for (; i < n && n < 16; ++i) pairs[r][i] = static_cast<uint8_t>(kFlip ? row[i] ^ 0x80 : row[i]);
    }
  }
  __m256i group(int r, int64_t step) const {
    int32_t pair;
    std::memcpy(&pair, pairs[r] + 2 * step, sizeof pair);
    return _mm256_set1_epi32(pair);
  }

 private:
  /// Sixteen bytes at i.
  void widen(const uint8_t* row, int r, int64_t i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i));
    const __m128i flipped = _mm_xor_si128(bytes, _mm_set1_epi8(kFlip ? static_cast<char>(0x80) : 0));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(pairs[r] + i), _mm256_cvtepu8_epi16(flipped));
  }
};

}  // namespace serin::kernels::cpu

#endif
