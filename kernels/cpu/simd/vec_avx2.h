// vec_avx2.h: The vector type of eight floats in a 256-bit register, with FMA and F16C. vec_portable.h defines each function.
#pragma once

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

#include <cstdint>

namespace serin::kernels::cpu {

struct VecAvx2 {
  using F = __m256;
  using M = __m256;  // all bits of an element set: yes
  static constexpr int kWidth = 8;
  static constexpr bool kFused = true;
  static constexpr int kGemmRows = 6;  // x 2 vectors: 12 accumulators, 2 vectors of B, 1 of A

  static F set(float x) { return _mm256_set1_ps(x); }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static F load_n(const float* p, int n, float fill) {
    if (n >= kWidth) return load(p);
    const __m256i mask = first(n);
    return _mm256_blendv_ps(set(fill), _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
  }
  static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  /// In halves: a masked store takes Zen 3 some fifteen cycles.
  static void store_n(float* p, F x, int n) {
    if (n >= kWidth) return store(p, x);
    __m128 rest = _mm256_castps256_ps128(x);
    if (n & 4) {
      _mm_storeu_ps(p, rest);
      rest = _mm256_extractf128_ps(x, 1), p += 4;
    }
    if (n & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(p), rest);
      rest = _mm_movehl_ps(rest, rest), p += 2;
    }
    if (n & 1) _mm_store_ss(p, rest);
  }
  static F keep_n(F x, int n, F others) {
    if (n >= kWidth) return x;
    return _mm256_blendv_ps(others, x, _mm256_castsi256_ps(first(n)));
  }
  static F load_lanes(const float* p, uint32_t lanes, float fill) {
    const __m256i mask = mask_of(lanes);
    return _mm256_blendv_ps(set(fill), _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
  }
  static F load_even(const float* p, uint32_t lanes, uint32_t elements, float fill) {
    const F low = _mm256_maskload_ps(p, mask_of(elements)), high = _mm256_maskload_ps(p + 8, mask_of(elements >> 8));
    const __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));  // low 0 2, high 0 2, low 4 6, high 4 6
    return _mm256_blendv_ps(set(fill), _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8)), _mm256_castsi256_ps(mask_of(lanes)));
  }
  static F gather(const float* p, const int32_t* index) {
    return _mm256_i32gather_ps(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), 4);
  }
  static F load_strided(const float* p, int64_t stride, uint32_t lanes, float fill) {
    const __m256i index = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(static_cast<int>(stride)));
    return _mm256_mask_i32gather_ps(set(fill), p, index, _mm256_castsi256_ps(mask_of(lanes)), 4);
  }
  template <int kStep>
  static F swap(F x) {
    if constexpr (kStep == 4) return _mm256_permute2f128_ps(x, x, 0x01);
    if constexpr (kStep == 2) return _mm256_permute_ps(x, 0x4e);
    if constexpr (kStep == 1) return _mm256_permute_ps(x, 0xb1);
  }

  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  /// GCC 12 lets the sum replace a factor, and then spills or reloads: tiles of 6 x 2 reached 61 % of the peak, and reach 93 % this way.
  static F accumulate(F a, F b, F sum) {
    asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
  }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F sqrt(F x) { return _mm256_sqrt_ps(x); }
  static F floor(F x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
  static F ceil(F x) { return _mm256_round_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
  static F round(F x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F abs(F x) { return _mm256_andnot_ps(set(-0.f), x); }
  static F copysign(F magnitude, F sign) { return _mm256_or_ps(abs(magnitude), _mm256_and_ps(set(-0.f), sign)); }

  static M less(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static M less_equal(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
  static M equal(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static M is_nan(F x) { return _mm256_cmp_ps(x, x, _CMP_UNORD_Q); }
  static F blend(M mask, F yes, F no) { return _mm256_blendv_ps(no, yes, mask); }
  static bool any(M mask) { return _mm256_movemask_ps(mask) != 0; }
  static void store_bool(void* p, M mask, int n) {
    const int bits = _mm256_movemask_ps(mask);
    for (int i = 0; i < n; ++i) static_cast<uint8_t*>(p)[i] = static_cast<uint8_t>(bits >> i & 1);
  }

  static F scale2(F x, F n) {  // in two steps: 2^n alone leaves the range of a float long before x * 2^n does
    const __m256i power = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(power, 1);
    return x * power_of_2(half) * power_of_2(_mm256_sub_epi32(power, half));
  }
  static F exponent(F x) {
    const __m256i biased = _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(x), 23), _mm256_set1_epi32(0xff));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(biased, _mm256_set1_epi32(127)));
  }
  static F mantissa(F x) {
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(static_cast<int>(0x807fffffu)));
    return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3f800000)));
  }

  static F load_f16(const void* p) { return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
  static void store_f16(void* p, F x) { _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)); }
  static F load_bf16(const void* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))), 16));
  }
  static void store_bf16(void* p, F x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i result = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan(x))), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(result, result), 0x08);
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  static F load_u8(const void* p) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)))); }
  static F load_i8(const void* p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)))); }
  static void load_halves(const void* p, F& low, F& high) {
    const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
    low = _mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15)));
    high = _mm256_cvtepi32_ps(_mm256_srli_epi32(bytes, 4));
  }
  static F load_i32(const void* p) { return _mm256_cvtepi32_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  static void store_i32(void* p, F x) {  // the instruction returns INT_MIN for all values out of range; its complement is INT_MAX
    const __m256i above = _mm256_castps_si256(_mm256_cmp_ps(x, set(0x1p31f), _CMP_GE_OQ));
    const __m256i saturated = _mm256_xor_si256(_mm256_cvttps_epi32(x), above);
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm256_andnot_si256(_mm256_castps_si256(is_nan(x)), saturated));
  }
  template <class T>
  static void store_narrow(void* p, F x) {  // the low bytes of each half together, then of both
    const __m256i whole = _mm256_cvttps_epi32(x);
    const __m128i low = _mm256_castsi256_si128(whole), high = _mm256_extracti128_si256(whole, 1);
    if constexpr (sizeof(T) == 1) {
      const __m128i bytes = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
      _mm_storel_epi64(static_cast<__m128i*>(p), _mm_unpacklo_epi32(_mm_shuffle_epi8(low, bytes), _mm_shuffle_epi8(high, bytes)));
    } else {
      const __m128i words = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
      _mm_storeu_si128(static_cast<__m128i*>(p), _mm_unpacklo_epi64(_mm_shuffle_epi8(low, words), _mm_shuffle_epi8(high, words)));
    }
  }

 private:
  static __m256i first(int n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
  static __m256i mask_of(uint32_t lanes) {
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(lanes)), bits), bits);
  }
  static F power_of_2(__m256i n) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23)); }
};

}  // namespace serin::kernels::cpu

#endif
