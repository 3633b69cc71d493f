// resize_avx2.cc: two pixels of three bytes at a time. Compiled for AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "runtime/steps/resize_down.h"

namespace serin::steps {
namespace {

constexpr ptrdiff_t kReadAtOnce = 8;  // bytes, of which two pixels are six

void across_avx2(const uint8_t* row, const uint8_t* end, std::span<const Taps> taps, int channels, uint8_t* to) {
  if (channels != 3) return sum_all_pixels<1>(row, taps, to);
  const __m128i lanes = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i of_pixel = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  for (const Taps& each : taps) {
    const uint8_t* from = row + static_cast<ptrdiff_t>(each.first) * 3;
    const int32_t* const weights = each.weights.data();
    const size_t count = each.weights.size();
    __m256i both = _mm256_setzero_si256();
    size_t k = 0;
    for (; k + 2 <= count && end - from >= kReadAtOnce; k += 2, from += 6) {
      const __m128i bytes = _mm_shuffle_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), lanes);
      const __m256i pair = _mm256_castsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights + k)));
      both = _mm256_add_epi32(both, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_permutevar8x32_epi32(pair, of_pixel)));
    }
    __m128i sums = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    sums = _mm_add_epi32(sums, _mm_set1_epi32(1 << (kTapBits - 1)));
    for (; k < count; ++k, from += 3)
      sums = _mm_add_epi32(sums, _mm_mullo_epi32(_mm_setr_epi32(from[0], from[1], from[2], 0), _mm_set1_epi32(weights[k])));
    sums = _mm_srai_epi32(sums, kTapBits);
    const __m128i words = _mm_packs_epi32(sums, sums);
    const int pixel = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    std::memcpy(to, &pixel, 3);
    to += 3;
  }
}

}  // namespace

const ResizeLoops kAvx2Resize = {across_avx2, sum_rows};

}  // namespace serin::steps
#endif
