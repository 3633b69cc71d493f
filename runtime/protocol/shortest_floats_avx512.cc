// shortest_floats_avx512.cc: shortest_float.cc for eight floats at a time. Nothing in it branches on a number but those that have no place in a list of plain
// ones (0, NaN, an exponent), which are printed one by one. Digits come out as bytes; one shuffle, of which there is one for each place of the point, puts
// zeros before them and the point among them.

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstdint>

#include "runtime/protocol/shortest_float_tables.h"

namespace serin::protocol {

bool write_eight_floats_avx512(const float* values, bool with_point, char*& out);

namespace {

using namespace schubfach;

constexpr size_t kLanes = 8;
constexpr int kPointAt = 15, kZeroAt = 10;  // in what is shuffled: digits from 0 on, zeros behind them, a point at the end

struct Layout {
  alignas(16) uint8_t order[16];
  uint8_t zeros, before;  // in front of the digits; characters before the point
};
constexpr auto kLayouts = [] {
  std::array<Layout, kMostPoint - kLeastPoint + 1> layouts{};
  for (int point = kLeastPoint; point <= kMostPoint; ++point) {
    Layout& layout = layouts[static_cast<size_t>(point - kLeastPoint)];
    const int zeros = point < 1 ? 1 - point : 0, before = point + zeros;
    for (int i = 0; i < 16; ++i) {
      const int digit = (i < before ? i : i - 1) - zeros;
      layout.order[i] = static_cast<uint8_t>(i == before ? kPointAt : digit < 0 || digit > kZeroAt ? kZeroAt : digit);
    }
    layout.zeros = static_cast<uint8_t>(zeros);
    layout.before = static_cast<uint8_t>(before);
  }
  return layouts;
}();

struct Eight {
  alignas(64) uint64_t low[kLanes], high[kLanes];  // sixteen bytes of each: nine digits, zeros, and what becomes a point
  alignas(64) int64_t count[kLanes], point[kLanes];
  uint8_t plain;  // by bit: those that are
};

__m512i constant(uint64_t value) { return _mm512_set1_epi64(static_cast<int64_t>(value)); }
__m512i divided(__m512i value, uint64_t factor, unsigned shift) {
  return _mm512_srli_epi64(_mm512_mul_epu32(value, constant(factor)), shift);
}

__m512i round_to_odd(__m512i power, __m512i factor) {
  const __m512i low = _mm512_mul_epu32(power, factor), high = _mm512_mul_epu32(_mm512_srli_epi64(power, 32), factor);
  const __m512i sum = _mm512_add_epi64(high, _mm512_srli_epi64(low, 32));
  const __mmask8 rest = _mm512_cmpgt_epu64_mask(_mm512_and_si512(sum, constant(0xffff'ffff)), constant(1));
  const __m512i whole = _mm512_srli_epi64(sum, 32);
  return _mm512_mask_or_epi64(whole, rest, whole, constant(1));
}

void convert(const float* values, Eight& eight) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  const __m256i fraction = _mm256_and_si256(bits, _mm256_set1_epi32((1 << kHidden) - 1));
  const __m256i biased = _mm256_and_si256(_mm256_srli_epi32(bits, kHidden), _mm256_set1_epi32(255));
  const __m256i one = _mm256_set1_epi32(1);
  const __mmask8 normal = _mm256_test_epi32_mask(biased, biased);
  const __mmask8 nearer_below = _mm256_testn_epi32_mask(fraction, fraction) & _mm256_cmpgt_epi32_mask(biased, one);
  eight.plain = _mm256_cmplt_epi32_mask(biased, _mm256_set1_epi32(255)) & _mm256_test_epi32_mask(bits, _mm256_set1_epi32(0x7fff'ffff));

  const __m256i c = _mm256_mask_or_epi32(fraction, normal, fraction, _mm256_set1_epi32(1 << kHidden));
  const __m256i q = _mm256_sub_epi32(_mm256_mask_mov_epi32(one, normal, biased), _mm256_set1_epi32(kBias));
  const __m256i scaled = _mm256_mullo_epi32(q, _mm256_set1_epi32(1262611));
  const __m256i k = _mm256_srai_epi32(_mm256_mask_sub_epi32(scaled, nearer_below, scaled, _mm256_set1_epi32(524031)), 22);
  const __m256i less_k = _mm256_sub_epi32(_mm256_setzero_si256(), k);
  const __m256i log2 = _mm256_srai_epi32(_mm256_mullo_epi32(less_k, _mm256_set1_epi32(1741647)), 19);
  const __m512i shift = _mm512_cvtepi32_epi64(_mm256_add_epi32(_mm256_add_epi32(q, log2), one));
  const __m512i power = _mm512_i32gather_epi64(_mm256_sub_epi32(less_k, _mm256_set1_epi32(kFirstPower)), kPowers.data(), 8);

  const __m512i four_c = _mm512_cvtepu32_epi64(_mm256_slli_epi32(c, 2)), two = constant(2), four = constant(4);
  const __m512i below_c = _mm512_sub_epi64(four_c, two);
  const __m512i odd = _mm512_cvtepu32_epi64(_mm256_and_si256(c, one));
  const __m512i low = _mm512_add_epi64(
      round_to_odd(power, _mm512_sllv_epi64(_mm512_mask_add_epi64(below_c, nearer_below, below_c, constant(1)), shift)), odd);
  const __m512i middle = round_to_odd(power, _mm512_sllv_epi64(four_c, shift));
  const __m512i high = _mm512_sub_epi64(round_to_odd(power, _mm512_sllv_epi64(_mm512_add_epi64(four_c, two), shift)), odd);

  const __m512i s = _mm512_srli_epi64(middle, 2), ten = divided(s, 0xcccc'cccd, 35);
  const __m512i forty = _mm512_mul_epu32(ten, constant(40)), four_s = _mm512_slli_epi64(s, 2), half = _mm512_add_epi64(four_s, two);
  const __mmask8 ten_below = _mm512_cmple_epu64_mask(low, forty);
  const __mmask8 ten_above = _mm512_cmple_epu64_mask(_mm512_add_epi64(forty, constant(40)), high);
  const __mmask8 below = _mm512_cmple_epu64_mask(low, four_s), above = _mm512_cmple_epu64_mask(_mm512_add_epi64(four_s, four), high);
  const __mmask8 nearer_above =
      _mm512_cmpgt_epu64_mask(middle, half) | (_mm512_cmpeq_epu64_mask(middle, half) & _mm512_test_epi64_mask(s, constant(1)));
  const __mmask8 shorter = _mm512_cmpge_epu64_mask(s, constant(10)) & (ten_below ^ ten_above);
  const __mmask8 chosen = below ^ above;
  const __mmask8 up = (chosen & above) | (static_cast<__mmask8>(~chosen) & nearer_above);
  __m512i digits = _mm512_mask_add_epi64(s, up, s, constant(1));
  digits = _mm512_mask_mov_epi64(digits, shorter, _mm512_mask_add_epi64(ten, ten_above, ten, constant(1)));
  const __m512i wide_k = _mm512_cvtepi32_epi64(k);
  const __m512i exponent = _mm512_mask_add_epi64(wide_k, shorter, wide_k, constant(1));

  __m512i written = constant(1);
  for (const uint64_t power_of_ten : {10u, 100u, 1'000u, 10'000u, 100'000u, 1'000'000u, 10'000'000u, 100'000'000u})
    written = _mm512_mask_add_epi64(written, _mm512_cmpge_epu64_mask(digits, constant(power_of_ten)), written, constant(1));
  const __m512i factors = _mm512_set_epi64(100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000, 0);  // by digits written
  const __m512i last_factors = _mm512_set_epi64(0, 0, 0, 0, 0, 0, 1, 10);
  const __m512i nine = _mm512_mul_epu32(digits, _mm512_permutex2var_epi64(factors, written, last_factors));
  const __m512i first = divided(nine, 0x55e6'3b89, 57);
  const __m512i eight_digits = _mm512_sub_epi64(nine, _mm512_mul_epu32(first, constant(100'000'000)));

  const __m512i upper = divided(eight_digits, 0xd1b7'1759, 45);
  const __m512i lower = _mm512_sub_epi64(eight_digits, _mm512_mul_epu32(upper, constant(10'000)));
  const __m512i fours = _mm512_or_si512(upper, _mm512_slli_epi64(lower, 32));
  const __m512i hundreds = _mm512_srli_epi32(_mm512_mullo_epi32(fours, _mm512_set1_epi32(10'486)), 20);
  const __m512i pairs =
      _mm512_or_si512(hundreds, _mm512_slli_epi32(_mm512_sub_epi32(fours, _mm512_mullo_epi32(hundreds, _mm512_set1_epi32(100))), 16));
  const __m512i tens = _mm512_srli_epi16(_mm512_mullo_epi16(pairs, _mm512_set1_epi16(103)), 10);
  const __m512i bytes =
      _mm512_or_si512(tens, _mm512_slli_epi16(_mm512_sub_epi16(pairs, _mm512_mullo_epi16(tens, _mm512_set1_epi16(10))), 8));

  const __m512i zeros = constant(0x3030'3030'3030'3030), point = constant(uint64_t{static_cast<uint8_t>('.' - '0')} << 56);
  _mm512_store_si512(eight.low, _mm512_add_epi8(_mm512_or_si512(first, _mm512_slli_epi64(bytes, 8)), zeros));
  _mm512_store_si512(eight.high, _mm512_add_epi8(_mm512_or_si512(_mm512_srli_epi64(bytes, 56), point), zeros));
  _mm512_store_si512(eight.count, _mm512_sub_epi64(constant(9), _mm512_srli_epi64(_mm512_lzcnt_epi64(bytes), 3)));
  const __m512i place = _mm512_add_epi64(written, exponent);
  _mm512_store_si512(eight.point, place);
  const __m512i least = _mm512_set1_epi64(kLeastPoint), most = _mm512_set1_epi64(kMostPoint);
  eight.plain &= _mm512_cmpge_epi64_mask(place, least) & _mm512_cmple_epi64_mask(place, most);
}

}  // namespace

bool write_eight_floats_avx512(const float* values, bool with_point, char*& out) {
  Eight eight;
  convert(values, eight);
  if (eight.plain != 0xff) return false;
  char* at = out;
  for (size_t i = 0; i < kLanes; ++i) {
    const Layout& layout = kLayouts[static_cast<size_t>(eight.point[i] - kLeastPoint)];
    const __m128i text = _mm_set_epi64x(static_cast<int64_t>(eight.high[i]), static_cast<int64_t>(eight.low[i]));
    *at = '-';
    at += std::bit_cast<uint32_t>(values[i]) >> 31;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at),
                     _mm_shuffle_epi8(text, _mm_load_si128(reinterpret_cast<const __m128i*>(layout.order))));
    const auto digits = static_cast<size_t>(eight.count[i]) + layout.zeros;
    const bool whole = digits <= layout.before;
    at += whole ? layout.before : digits + 1;
    if (whole && with_point) {
      *at++ = '.';
      *at++ = '0';
    }
    *at++ = ',';
  }
  out = at;
  return true;
}

}  // namespace serin::protocol
