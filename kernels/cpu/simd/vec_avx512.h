// vec_avx512.h: The vector type of sixteen floats in a 512-bit register. vec_portable.h defines each function.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)

#include <immintrin.h>

#include <cstdint>

namespace serin::kernels::cpu {

struct VecAvx512 {
  using F = __m512;
  using M = __mmask16;
  static constexpr int kWidth = 16;
  static constexpr bool kFused = true;
  static constexpr int kGemmRows = 14;  // x 2 vectors: 28 accumulators, 2 vectors of B, and A broadcast from memory

  static F set(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load_n(const float* p, int n, float fill) { return _mm512_mask_loadu_ps(set(fill), first(n), p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static void store_n(float* p, F x, int n) { _mm512_mask_storeu_ps(p, first(n), x); }
  static F keep_n(F x, int n, F others) { return _mm512_mask_blend_ps(first(n), others, x); }
  static F load_lanes(const float* p, uint32_t lanes, float fill) { return _mm512_mask_loadu_ps(set(fill), static_cast<M>(lanes), p); }
  static F load_even(const float* p, uint32_t lanes, uint32_t elements, float fill) {
    const F low = _mm512_maskz_loadu_ps(static_cast<M>(elements), p), high = _mm512_maskz_loadu_ps(static_cast<M>(elements >> 16), p + 16);
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_mask_blend_ps(static_cast<M>(lanes), set(fill), _mm512_permutex2var_ps(low, even, high));
  }
  static F gather(const float* p, const int32_t* index) { return _mm512_i32gather_ps(_mm512_loadu_si512(index), p, 4); }
  static F load_strided(const float* p, int64_t stride, uint32_t lanes, float fill) {
    const __m512i index = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                             _mm512_set1_epi32(static_cast<int>(stride)));
    return _mm512_mask_i32gather_ps(set(fill), static_cast<M>(lanes), index, p, 4);
  }
  template <int kStep>
  static F swap(F x) {
    if constexpr (kStep == 8) return _mm512_shuffle_f32x4(x, x, 0x4e);
    if constexpr (kStep == 4) return _mm512_shuffle_f32x4(x, x, 0xb1);
    if constexpr (kStep == 2) return _mm512_permute_ps(x, 0x4e);
    if constexpr (kStep == 1) return _mm512_permute_ps(x, 0xb1);
  }

  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F accumulate(F a, F b, F sum) { return fma(a, b, sum); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F sqrt(F x) { return _mm512_sqrt_ps(x); }
  static F floor(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
  static F ceil(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
  static F round(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F abs(F x) { return _mm512_abs_ps(x); }
  static F copysign(F magnitude, F sign) {
    const F bit = set(-0.f);
    return _mm512_or_ps(_mm512_andnot_ps(bit, magnitude), _mm512_and_ps(bit, sign));
  }

  static M less(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static M less_equal(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  static M equal(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static M is_nan(F x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
  static F blend(M mask, F yes, F no) { return _mm512_mask_blend_ps(mask, no, yes); }
  static bool any(M mask) { return mask != 0; }
  static void store_bool(void* p, M mask, int n) { _mm_mask_storeu_epi8(p, first(n), _mm_maskz_set1_epi8(mask, 1)); }

  static F scale2(F x, F n) { return _mm512_scalef_ps(x, n); }  // 2^floor(n)
  static F fraction(F x) { return _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
  static F exponent(F x) { return _mm512_getexp_ps(x); }
  static F mantissa(F x) { return _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src); }

  static F load_f16(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  static void store_f16(void* p, F x) { _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)); }
  static F load_bf16(const void* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  static void store_bf16(void* p, F x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __m512i result = _mm512_mask_blend_epi32(is_nan(x), rounded, quiet);
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16)));
  }
  static F load_u8(const void* p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))); }
  static F load_i8(const void* p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))); }
  static void load_halves(const void* p, F& low, F& high) {
    const F numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
    low = _mm512_permutexvar_ps(bytes, numbers);  // uses only four bits
    high = _mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), numbers);
  }
  static F load_i32(const void* p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }
  static void store_i32(void* p, F x) {  // the instruction returns INT_MIN for all values out of range
    const __m512i truncated = _mm512_maskz_cvttps_epi32(static_cast<M>(~is_nan(x)), x);
    const M above = _mm512_cmp_ps_mask(x, set(0x1p31f), _CMP_GE_OQ);
    _mm512_storeu_si512(p, _mm512_mask_mov_epi32(truncated, above, _mm512_set1_epi32(INT32_MAX)));
  }
  template <class T>
  static void store_narrow(void* p, F x) {
    const __m512i whole = _mm512_cvttps_epi32(x);
    if constexpr (sizeof(T) == 1)
      _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(whole));
    else
      _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(whole));
  }

  static void store_i64(void* p, F x) {
    const __m512i low = to_i64(_mm512_castps512_ps256(x)), high = to_i64(_mm512_extractf32x8_ps(x, 1));
    _mm512_storeu_si512(p, low);
    _mm512_storeu_si512(static_cast<int64_t*>(p) + 8, high);
  }

 private:
  static __m512i to_i64(__m256 x) {
    const __mmask8 number = _mm256_cmp_ps_mask(x, x, _CMP_ORD_Q), above = _mm256_cmp_ps_mask(x, _mm256_set1_ps(0x1p63f), _CMP_GE_OQ);
    return _mm512_mask_mov_epi64(_mm512_maskz_cvttps_epi64(number, x), above, _mm512_set1_epi64(INT64_MAX));
  }
  static M first(int n) { return static_cast<M>((1u << n) - 1u); }
};

}  // namespace serin::kernels::cpu

#endif
