// blocked_bf16_avx512.cc: the products of convolutions on pairs of bf16, compiled with -mavx512bf16 and the AVX-512 flags. The tiles are those of f32:
// one instruction multiplies two channels of a pixel by the weights of 16 filters and adds both to the sums.

#include "kernels/cpu/simd/blocked_table.h"
#include "kernels/cpu/simd/vec_avx512.h"

namespace serin::kernels::cpu {

namespace {

/// A type of its own, so that no template instance is shared with files that are compiled without the instructions.
struct VecBf16Pairs : VecAvx512 {};

}  // namespace

template <>
struct Words<VecBf16Pairs> {
  using F = __m512;
  static constexpr int64_t kOfBlock = VecBf16Pairs::kWidth / 2;
  static F multiply_add(F a, F b, F sum) { return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)); }
  static void store(float* words, F x) { _mm256_storeu_ps(words, reinterpret_cast<__m256>(_mm512_cvtneps_pbh(x))); }
};

namespace {

/// Two channels of 16 pixels, of which `lanes` exist, as words.
__m512i pairs(__mmask16 lanes, const float* low, const float* high) {
  const auto bits = [lanes](const float* x) {
    return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, x))));
  };
  return high ? _mm512_or_si512(bits(low), _mm512_slli_epi32(bits(high), 16)) : bits(low);
}

/// A last channel without partner is paired with zeros. Images have three or four channels, two words to a pixel.
void interleave(const float* x, int64_t x_step, int64_t c, int64_t n, float* words) {
  constexpr int kWidth = VecBf16Pairs::kWidth;
  const int64_t step = (c + 1) / 2;
  const __m512i each = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i zip = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i at = _mm512_mullo_epi32(each, _mm512_set1_epi32(static_cast<int>(step)));
  for (int64_t i = 0; i < n; i += kWidth, words += kWidth * step) {
    const uint32_t lanes = n - i < kWidth ? (1u << (n - i)) - 1u : 0xffffu;
    const auto pair = [&](int64_t p) {
      const float* const low = x + 2 * p * x_step + i;
      return pairs(static_cast<__mmask16>(lanes), low, 2 * p + 1 < c ? low + x_step : nullptr);
    };
    if (step == 2 && lanes == 0xffffu) {
      const __m512i first = pair(0), second = pair(1);
      _mm512_storeu_si512(words, _mm512_permutex2var_epi32(first, zip, second));
      _mm512_storeu_si512(words + kWidth, _mm512_permutex2var_epi32(first, _mm512_add_epi32(zip, _mm512_set1_epi32(8)), second));
      continue;
    }
    for (int64_t p = 0; p < step; ++p) _mm512_mask_i32scatter_epi32(words + p, static_cast<__mmask16>(lanes), at, pair(p), 4);
  }
}

void round(const float* x, int64_t stride, int64_t pixels, float* words) {
  constexpr int64_t kWidth = VecBf16Pairs::kWidth;
  const float* const second = x + stride * kWidth;
  int64_t p = 0;
  for (; p + 2 <= pixels; p += 2, words += kWidth) {
    const __m512 even = _mm512_loadu_ps(x + p * stride * kWidth), odd = _mm512_loadu_ps(second + p * stride * kWidth);
    _mm512_storeu_ps(words, reinterpret_cast<__m512>(_mm512_cvtne2ps_pbh(odd, even)));
  }
  if (p < pixels) Words<VecBf16Pairs>::store(words, _mm512_loadu_ps(x + p * stride * kWidth));
}

}  // namespace

const BlockedProducts kBlockedBf16Avx512 = blocked_products<VecBf16Pairs>("bf16", &interleave, &round);

}  // namespace serin::kernels::cpu
