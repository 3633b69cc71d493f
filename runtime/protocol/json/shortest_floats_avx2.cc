// shortest_floats_avx2.cc: shortest_float.cc for many floats, eight at a time, by the same steps and tables. Nothing in it branches on a number, but that
// one which is subnormal, infinite or NaN ends it, and that exponents are made only where there is one.
//
// All that a text may need is put into sixteen bytes: nine digits, a point, a sign ... One shuffle, of which there is one for each place of the point, sign and
// number of digits, makes the text of it. Texts overlap as they are written: what a short one leaves lies under the next.
//
// A processor looks some hundred instructions ahead, but each step waits for the one before it. So there are four loops over a block instead of one: in a short
// loop several eights are within its sight.

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/protocol/json/shortest_float_tables.h"

namespace serin::protocol {

size_t write_floats_avx2(const float* values, size_t count, char*& out);

namespace {

using namespace schubfach;
constexpr size_t kLanes = 8, kBlock = 128;
constexpr int kMostDigits = 9, kFewestDigits = 6;  // of a normal float, before zeros at the end are left out

/// Where what is in the sixteen bytes. A text with an exponent has no zeros in front or behind: its 'e' is where others have one.
enum Place : uint8_t {
  kFirst = 8,
  kZero = 9,
  kMark = 9,
  kMinus = 10,
  kPoint = 11,
  kExponentSign = 13,
  kExponentTens = 14,
  kExponentOnes = 15
};
constexpr int kDigitPlaces[kMostDigits] = {kFirst, 0, 1, 2, 3, 4, 5, 6, 7};

// A text's form is the place of its point from kLeastPoint on, or kWithExponent.
constexpr int kWithExponent = kMostPoint - kLeastPoint + 1, kForms = kWithExponent + 1, kCounts = 16;
static_assert(kMostPoint <= 13);  // of sixteen characters: before them comes a sign, behind them a point and a zero

struct Layouts {
  alignas(16) uint8_t order[kForms * 2 * kCounts][16];  // by form, sign and number of digits but one
  uint8_t size[kForms * 2 * kCounts];                   // with a comma
};
constexpr auto kLayouts = [] {
  Layouts layouts{};
  for (int index = 0; index < kForms * 2 * kCounts; ++index) {
    const int form = index / kCounts / 2, count = index % kCounts + 1;
    const int point = form == kWithExponent ? 1 : form + kLeastPoint;
    const int zeros = point < 1 ? 1 - point : 0, before = point + zeros;  // in front of the digits; characters before the point
    std::array<uint8_t, 32> places{};
    size_t size = 0;
    const auto put = [&](int place) { places[size++] = static_cast<uint8_t>(place); };
    if (index / kCounts % 2 != 0) put(kMinus);
    for (int i = -zeros; i < count || i + zeros < before; ++i) {
      if (i + zeros == before) put(kPoint);
      put(i < 0 || i >= kMostDigits ? int{kZero} : kDigitPlaces[i]);
    }
    if (form == kWithExponent)
      for (const int place : {kMark, kExponentSign, kExponentTens, kExponentOnes}) put(place);
    for (size_t i = 0; i < 16; ++i) layouts.order[index][i] = places[i];
    layouts.size[index] = static_cast<uint8_t>(size + 1);
  }
  return layouts;
}();

/// A constant that is loaded. GCC would make one that it knows anew for each eight, by instructions that all want the same unit: half of the time.
template <int32_t kValue>
__m256i all() {
  static constexpr int32_t kLane = kValue;
  __m256i lanes;
  asm("vpbroadcastd %1, %0" : "=x"(lanes) : "m"(kLane));
  return lanes;
}
template <int32_t kValue>
__m256i all_16() {
  return all<kValue << 16 | kValue>();
}
constexpr int32_t four_chars(int a, int b, int c, int d) { return a | b << 8 | c << 16 | d << 24; }

__m256i load(const void* lanes) { return _mm256_loadu_si256(static_cast<const __m256i*>(lanes)); }
void store(void* lanes, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(lanes), value); }
bool any(__m256i mask) { return _mm256_testz_si256(mask, mask) == 0; }

/// Of lanes 0, 1, 4, 5 and of the others: 64 bits each.
struct Wide {
  __m256i front, back;
};
Wide widened(__m256i lanes) { return {_mm256_unpacklo_epi32(lanes, lanes), _mm256_unpackhi_epi32(lanes, lanes)}; }
template <int kHalves>
__m256i narrowed(const Wide& wide) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(wide.front), _mm256_castsi256_ps(wide.back), kHalves));
}
__m256i lower(const Wide& wide) { return narrowed<0b10'00'10'00>(wide); }
__m256i upper(const Wide& wide) { return narrowed<0b11'01'11'01>(wide); }

template <uint32_t kFactor, int kShift>
__m256i divided(__m256i value) {
  const __m256i factor = all<static_cast<int32_t>(kFactor)>();
  const Wide wide = widened(value);
  return _mm256_srli_epi32(upper({_mm256_mul_epu32(wide.front, factor), _mm256_mul_epu32(wide.back, factor)}), kShift);
}

struct Block {
  alignas(32) int32_t power[kBlock], shift[kBlock];      // of ten, as an index; of the binary significand
  alignas(32) int32_t digits[kBlock], exponent[kBlock];  // the decimal, as shortest() has it
  alignas(32) uint8_t parts[kBlock][16];
  alignas(32) uint32_t layout[kBlock];
};

/// How many from the front are zero or normal: they have a power and a shift, and the exponent that goes with them.
size_t scale(const float* values, size_t count, Block& block) {
  const __m256i none = _mm256_setzero_si256(), one = all<1>();
  size_t at = 0;
  for (; count - at >= kLanes; at += kLanes) {
    const __m256i magnitude = _mm256_and_si256(load(values + at), all<0x7fff'ffff>()), zero = _mm256_cmpeq_epi32(magnitude, none);
    const __m256i above_least = _mm256_sub_epi32(magnitude, all<1 << kHidden>());  // wraps below it
    const __m256i not_normal = _mm256_cmpeq_epi32(_mm256_max_epu32(above_least, all<254 << kHidden>()), above_least);
    if (_mm256_testc_si256(zero, not_normal) == 0) break;

    const __m256i fraction = _mm256_and_si256(magnitude, all<(1 << kHidden) - 1>());
    const __m256i biased = _mm256_max_epi32(_mm256_srli_epi32(magnitude, kHidden), one);
    const __m256i nearer_below = _mm256_and_si256(_mm256_cmpeq_epi32(fraction, none), _mm256_cmpgt_epi32(biased, one));
    const __m256i q = _mm256_sub_epi32(biased, all<kBias>());
    const __m256i scaled = _mm256_sub_epi32(_mm256_mullo_epi32(q, all<1262611>()), _mm256_and_si256(nearer_below, all<524031>()));
    const __m256i k = _mm256_srai_epi32(scaled, 22), less_k = _mm256_sub_epi32(none, k);
    const __m256i log2 = _mm256_srai_epi32(_mm256_mullo_epi32(less_k, all<1741647>()), 19);
    store(block.shift + at, _mm256_add_epi32(_mm256_add_epi32(q, log2), one));
    store(block.power + at, _mm256_sub_epi32(less_k, all<kFirstPower>()));
    store(block.exponent + at, k);
  }
  return at;
}

struct Powers {
  Wide low, high;  // halves

  explicit Powers(const int32_t* index) {
    const auto power = [&](size_t lane) { return static_cast<int64_t>(kPowers.data()[index[lane]]); };  // mostly faster than a gather
    low = {_mm256_set_epi64x(power(5), power(4), power(1), power(0)), _mm256_set_epi64x(power(7), power(6), power(3), power(2))};
    high = {_mm256_srli_epi64(low.front, 32), _mm256_srli_epi64(low.back, 32)};
  }
  __m256i round_to_odd(__m256i factor) const {
    const Wide factors = widened(factor);
    const Wide product{from_2_to_32(low.front, high.front, factors.front), from_2_to_32(low.back, high.back, factors.back)};
    return _mm256_or_si256(upper(product), _mm256_srli_epi32(_mm256_min_epu32(lower(product), all<2>()), 1));
  }

 private:
  static __m256i from_2_to_32(__m256i low, __m256i high, __m256i factor) {
    return _mm256_add_epi64(_mm256_mul_epu32(high, factor), _mm256_srli_epi64(_mm256_mul_epu32(low, factor), 32));
  }
};

/// The digits, none for a zero.
void shorten(const float* values, size_t count, Block& block) {
  const __m256i none = _mm256_setzero_si256(), one = all<1>(), two = all<2>();
  for (size_t at = 0; at < count; at += kLanes) {
    const __m256i magnitude = _mm256_and_si256(load(values + at), all<0x7fff'ffff>()), zero = _mm256_cmpeq_epi32(magnitude, none);
    const __m256i fraction = _mm256_and_si256(magnitude, all<(1 << kHidden) - 1>()), c = _mm256_or_si256(fraction, all<1 << kHidden>());
    const __m256i nearer_below = _mm256_and_si256(_mm256_cmpeq_epi32(fraction, none), _mm256_cmpgt_epi32(magnitude, all<1 << kHidden>()));

    const Powers powers(block.power + at);
    const __m256i shift = load(block.shift + at), four_c = _mm256_slli_epi32(c, 2), odd = _mm256_and_si256(c, one);
    const __m256i below_c = _mm256_sub_epi32(_mm256_sub_epi32(four_c, two), nearer_below), above_c = _mm256_add_epi32(four_c, two);
    const __m256i low = _mm256_add_epi32(powers.round_to_odd(_mm256_sllv_epi32(below_c, shift)), odd);
    const __m256i middle = powers.round_to_odd(_mm256_sllv_epi32(four_c, shift));
    const __m256i high = _mm256_sub_epi32(powers.round_to_odd(_mm256_sllv_epi32(above_c, shift)), odd);

    // A mask is -1 where it holds: to take it away is to add 1.
    const __m256i s = _mm256_srli_epi32(middle, 2), four_s = _mm256_slli_epi32(s, 2), ten = divided<0xcccc'cccd, 3>(s);
    const __m256i forty = _mm256_slli_epi32(_mm256_add_epi32(ten, _mm256_slli_epi32(ten, 2)), 3);
    const __m256i not_ten = _mm256_cmpgt_epi32(low, forty), not_next_ten = _mm256_cmpgt_epi32(_mm256_add_epi32(forty, all<40>()), high);
    const __m256i not_s = _mm256_cmpgt_epi32(low, four_s), not_next = _mm256_cmpgt_epi32(_mm256_add_epi32(four_s, all<4>()), high);
    const __m256i one_of_both = _mm256_xor_si256(not_s, not_next), shorter = _mm256_xor_si256(not_ten, not_next_ten);
    const __m256i quarters = _mm256_and_si256(middle, all<3>());  // of the way to the next; half of it leads to the even one
    const __m256i next_is_nearer = _mm256_cmpgt_epi32(_mm256_add_epi32(quarters, _mm256_and_si256(s, one)), two);
    const __m256i next = _mm256_or_si256(_mm256_andnot_si256(not_next, not_s), _mm256_andnot_si256(one_of_both, next_is_nearer));
    const __m256i next_ten = _mm256_andnot_si256(not_next_ten, not_ten);
    const __m256i digits = _mm256_blendv_epi8(_mm256_sub_epi32(s, next), _mm256_sub_epi32(ten, next_ten), shorter);
    store(block.digits + at, _mm256_andnot_si256(zero, digits));
    store(block.exponent + at, _mm256_sub_epi32(load(block.exponent + at), shorter));
  }
}

/// Numbers below 100, as two bytes each.
__m256i apart(__m256i pairs) {
  const __m256i tens = _mm256_mulhi_epu16(pairs, all_16<6'554>());
  return _mm256_sub_epi16(_mm256_slli_epi16(pairs, 8), _mm256_mullo_epi16(tens, all_16<2'559>()));  // 2560 - 1
}

/// Nine digits of each: the first, and the others as bytes.
struct Digits {
  __m256i first;
  Wide others;

  explicit Digits(__m256i nine) {
    const __m256i five = divided<0xd1b7'1759, 13>(nine), four = _mm256_sub_epi32(nine, _mm256_mullo_epi32(five, all<10'000>()));
    first = _mm256_srli_epi32(_mm256_mulhi_epu16(_mm256_srli_epi32(five, 4), all<26'844>()), 8);  // five / 16 / 625
    const __m256i fours = _mm256_or_si256(_mm256_sub_epi32(five, _mm256_madd_epi16(first, all<10'000>())), _mm256_slli_epi32(four, 16));
    const __m256i hundreds = _mm256_srli_epi16(_mm256_mulhi_epu16(fours, all_16<5'243>()), 3);
    const __m256i rest = _mm256_sub_epi16(fours, _mm256_mullo_epi16(hundreds, all_16<100>()));
    others = {apart(_mm256_unpacklo_epi16(hundreds, rest)), apart(_mm256_unpackhi_epi16(hundreds, rest))};
  }
  /// How many of the others there are without the zeros at the end; less than 0 for none.
  __m256i count() const {
    const __m256i bits = lower({not_zero(others.front), not_zero(others.back)});
    return _mm256_sub_epi32(_mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(bits)), kHidden),
                            all<126>());  // the highest one's place
  }

 private:
  static __m256i not_zero(__m256i bytes) {
    const __m256i zero = _mm256_setzero_si256(), weights = _mm256_set1_epi64x(static_cast<int64_t>(0x8040'2010'0804'0201));
    return _mm256_sad_epu8(_mm256_andnot_si256(_mm256_cmpeq_epi8(bytes, zero), weights), zero);
  }
};

/// Of "e-07" what comes behind the 'e', behind a byte that is not used.
__m256i exponent_chars(__m256i exponent) {
  const __m256i minus = _mm256_and_si256(_mm256_srai_epi32(exponent, 31), all<four_chars(0, '-' - '+', 0, 0)>());
  const __m256i digits = _mm256_slli_epi32(apart(_mm256_abs_epi32(exponent)), 16);
  return _mm256_add_epi32(_mm256_add_epi32(digits, minus), all<four_chars(0, '+', '0', '0')>());
}

void lay_out(const float* values, size_t count, Block& block) {
  const __m256i factors = _mm256_setr_epi32(1'000, 0, 0, 0, 0, 1, 10, 100);  // for three, two, one digit more than the fewest at the end
  for (size_t at = 0; at < count; at += kLanes) {
    const __m256i digits = load(block.digits + at), zero = _mm256_cmpeq_epi32(digits, _mm256_setzero_si256());
    __m256i more = _mm256_add_epi32(_mm256_cmpgt_epi32(digits, all<999'999>()), _mm256_cmpgt_epi32(digits, all<9'999'999>()));
    more = _mm256_add_epi32(more, _mm256_cmpgt_epi32(digits, all<99'999'999>()));  // less than 0
    const Digits nine(_mm256_mullo_epi32(digits, _mm256_permutevar8x32_epi32(factors, more)));
    const __m256i place = _mm256_sub_epi32(_mm256_add_epi32(load(block.exponent + at), all<kFewestDigits>()), more);
    const __m256i point = _mm256_sub_epi32(_mm256_andnot_si256(zero, place), zero);

    const __m256i form = _mm256_min_epu32(_mm256_sub_epi32(point, all<kLeastPoint>()), all<kWithExponent>());
    const __m256i has_exponent = _mm256_cmpeq_epi32(form, all<kWithExponent>()), bits = load(values + at);
    const __m256i least = _mm256_andnot_si256(has_exponent, point);  // whole ones with a zero behind the point
    const __m256i behind_first = _mm256_max_epi32(_mm256_max_epi32(nine.count(), least), _mm256_setzero_si256());
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 27), all<kCounts>());
    store(block.layout + at, _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi32(form, 5), sign), behind_first));

    __m256i starts = _mm256_add_epi32(nine.first, all<four_chars('0', '0', '-', '.')>()), ends = _mm256_setzero_si256();
    if (any(has_exponent)) {
      starts = _mm256_add_epi32(starts, _mm256_and_si256(has_exponent, all<four_chars(0, 'e' - '0', 0, 0)>()));
      ends = exponent_chars(_mm256_sub_epi32(point, all<1>()));
    }
    const __m256i zeros = all<four_chars('0', '0', '0', '0')>();
    const auto put = [&, to = block.parts + at](size_t lane, __m256i parts) {
      _mm_store_si128(reinterpret_cast<__m128i*>(to[lane]), _mm256_castsi256_si128(parts));
      _mm_store_si128(reinterpret_cast<__m128i*>(to[lane + kLanes / 2]), _mm256_extracti128_si256(parts, 1));
    };
    const __m256i front = _mm256_or_si256(nine.others.front, zeros), front_rest = _mm256_unpacklo_epi32(starts, ends);
    const __m256i back = _mm256_or_si256(nine.others.back, zeros), back_rest = _mm256_unpackhi_epi32(starts, ends);
    put(0, _mm256_unpacklo_epi64(front, front_rest));
    put(1, _mm256_unpackhi_epi64(front, front_rest));
    put(2, _mm256_unpacklo_epi64(back, back_rest));
    put(3, _mm256_unpackhi_epi64(back, back_rest));
  }
}

char* put_together(const Block& block, size_t count, char* out) {
  for (size_t i = 0; i < count; ++i) {
    const size_t layout = block.layout[i];
    const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(kLayouts.order[layout]));
    const __m128i parts = _mm_load_si128(reinterpret_cast<const __m128i*>(block.parts[i]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(parts, order));
    out += kLayouts.size[layout];
    out[-1] = ',';
  }
  return out;
}

}  // namespace

size_t write_floats_avx2(const float* values, size_t count, char*& out) {
  Block block;
  size_t written = 0;
  while (count - written >= kLanes) {
    const float* const next = values + written;
    const size_t some = std::min(count - written, kBlock) / kLanes * kLanes, scaled = scale(next, some, block);
    shorten(next, scaled, block);
    lay_out(next, scaled, block);
    out = put_together(block, scaled, out);
    written += scaled;
    if (scaled < some) break;
  }
  return written;
}

}  // namespace serin::protocol
