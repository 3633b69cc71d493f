// quant_avx2.h: Quantised arithmetic with eight sums in a register.
//
// Products of bytes are computed as pairs of 16 bits (vpmaddwd), because the instruction for bytes saturates.
#pragma once

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace serin::kernels::cpu {

template <class V>
struct PackSingly;

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
  template <bool kFlip>
  static I broadcast(const uint8_t* p) {
    const auto low = static_cast<uint8_t>(kFlip ? p[0] ^ 0x80 : p[0]), high = static_cast<uint8_t>(kFlip ? p[1] ^ 0x80 : p[1]);
    return _mm256_set1_epi32(low | high << 16);
  }
  static I dot(I sum, I x, I w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w)); }

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

  static I load_ints(const int32_t* p, int n) { return _mm256_maskload_epi32(p, first(n)); }
  static void store_ints(int32_t* p, I x, int n) { _mm256_maskstore_epi32(p, first(n), x); }
  static F load_floats(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
  static void store_floats(float* p, F x, int n) { _mm256_maskstore_ps(p, first(n), x); }
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

 private:
  static I first(int n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
};

}  // namespace serin::kernels::cpu

#endif
