// quant_avx512vnni.h: Quantised arithmetic with sixteen sums in a register; one instruction adds four products to each.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512VNNI__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace serin::kernels::cpu {

struct QuantVecAvx512Vnni {
  using I = __m512i;
  using F = __m512;
  using Weight = int8_t;
  static constexpr int kLanes = 16;
  static constexpr int kBytes = 64;
  static constexpr int kGroup = 4;
  static constexpr int kRows = 6;  // x 4 vectors: 24 accumulators, 4 vectors of weights, one broadcast
  static constexpr int kVectors = 4;

  static I zero() { return _mm512_setzero_si512(); }
  static I set(int32_t x) { return _mm512_set1_epi32(x); }
  static F setf(float x) { return _mm512_set1_ps(x); }
  static I load_weights(const char* p) { return _mm512_loadu_si512(p); }
  template <bool kFlip>
  static I broadcast(const uint8_t* p) {
    int32_t group;
    std::memcpy(&group, p, sizeof group);
    const I x = _mm512_set1_epi32(group);
    return kFlip ? _mm512_xor_si512(x, _mm512_set1_epi8(static_cast<char>(0x80))) : x;
  }
  static I dot(I sum, I x, I w) { return _mm512_dpbusd_epi32(sum, x, w); }

  static I add(I a, I b) { return _mm512_add_epi32(a, b); }
  static I sub(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I multiply(I a, I b) { return _mm512_mullo_epi32(a, b); }
  static I min(I a, I b) { return _mm512_min_epi32(a, b); }
  static I max(I a, I b) { return _mm512_max_epi32(a, b); }
  static F maxf(F a, F b) { return _mm512_max_ps(a, b); }
  static F minf(F a, F b) { return _mm512_min_ps(a, b); }
  static F to_float(I x) { return _mm512_cvtepi32_ps(x); }
  /// To the nearest integer, ties to even.
  static I round(F x) { return _mm512_cvtps_epi32(x); }
  static F whole(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F nan_as_zero(F x) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x); }

  static __mmask16 first(int n) { return static_cast<__mmask16>(n >= kLanes ? 0xffff : (1 << n) - 1); }
  static I load_ints(const int32_t* p, int n) { return _mm512_maskz_loadu_epi32(first(n), p); }
  static F load_floats(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store_ints(int32_t* p, I x, int n) { _mm512_mask_storeu_epi32(p, first(n), x); }
  static void store_floats(float* p, F x, int n) { _mm512_mask_storeu_ps(p, first(n), x); }
  static I load_bytes(const uint8_t* p, bool is_signed, int n) {
    const __m128i bytes = _mm_maskz_loadu_epi8(first(n), p);
    return is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
  }
  static void store_bytes(uint8_t* p, I x, int n) {
    if (n >= kLanes)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x));
    else
      _mm_mask_storeu_epi8(p, first(n), _mm512_cvtepi32_epi8(x));
  }
  /// Four vectors as 64 bytes: through 16 bits, which saturate as the bytes do; so only a bound above the type's own remains to apply.
  struct Packing {
    const __m512i zero, low;
    const bool is_signed;
    template <class To>
    explicit Packing(const To& to)
        : zero(_mm512_set1_epi16(static_cast<int16_t>(to.zero))),
          low(_mm512_set1_epi8(static_cast<char>(to.low))),
          is_signed(to.high == 127) {}
    template <int kCount>
    void store(uint8_t* y, const I (&q)[kCount], int n) const {
      const auto at = [&q](int v) { return q[v < kCount ? v : 0]; };
      const __m512i first_half = _mm512_adds_epi16(_mm512_packs_epi32(at(0), at(1)), zero);
      const __m512i second_half = _mm512_adds_epi16(_mm512_packs_epi32(at(2), at(3)), zero);
      const __m512i bytes = is_signed ? _mm512_max_epi8(_mm512_packs_epi16(first_half, second_half), low)
                                      : _mm512_max_epu8(_mm512_packus_epi16(first_half, second_half), low);
      // Packing works on quarters: quarter i contains the quarters i of all four.
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      const __mmask64 lanes = n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
      _mm512_mask_storeu_epi8(y, lanes, _mm512_permutexvar_epi32(order, bytes));
    }
  };
  static float least(F x) { return _mm512_reduce_min_ps(x); }
  static float most(F x) { return _mm512_reduce_max_ps(x); }
  static F divide(F a, F b) { return _mm512_div_ps(a, b); }
};

}  // namespace serin::kernels::cpu

#endif
