// shortest_float.cc: prints the shortest digits of a float by Schubfach (Raffaello Giulietti, "The Schubfach way to render doubles", 2020),
// for binary32.
//
// A float c * 2^q stands for all numbers nearer to it than to its neighbours. With 10^k the largest power of ten not above the width of that interval, at least
// one multiple of 10^k lies in it, and at most one of 10^(k+1); the shortest is among four candidates. They are compared in units of 10^k / 4, where
// the middle and both ends of the interval are integers but for a remainder, which one more bit stands for (round to odd). That takes three
// products of a 64-bit power of ten with 32 bits, and no division but by constants.

#include "runtime/protocol/json/shortest_float.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/protocol/json/shortest_float_tables.h"

namespace serin::protocol {

size_t write_floats_avx2(const float* values, size_t count, char*& out);

namespace {

using namespace schubfach;

constexpr auto kPairs = [] {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

// Exact for all exponents that a float has.
constexpr int floor_log2_of_ten_to(int e) { return (e * 1741647) >> 19; }
constexpr int floor_log10_of_two_to(int e) { return (e * 1262611) >> 22; }
constexpr int floor_log10_of_three_quarters_of_two_to(int e) { return (e * 1262611 - 524031) >> 22; }

/// The product's bits from 2^64 on; the lowest also stands for all below.
uint32_t round_to_odd(uint64_t power, uint32_t factor) {
  const Wide product = Wide{power} * factor;
  return static_cast<uint32_t>(product >> 64) | (static_cast<uint32_t>(product >> 32) > 1 ? 1 : 0);
}

struct Decimal {
  uint32_t digits;
  int exponent;
};

Decimal shortest(uint32_t fraction, int biased) {
  const uint32_t c = biased != 0 ? fraction | uint32_t{1} << kHidden : fraction;
  const int q = (biased != 0 ? biased : 1) - kBias;
  if (q <= 0 && -q <= kHidden && (c & ((uint32_t{1} << -q) - 1)) == 0) return {c >> -q, 0};  // an integer

  const bool even = c % 2 == 0;                           // then the ends of the interval round to it, too
  const bool nearer_below = fraction == 0 && biased > 1;  // a power of two
  const int k = nearer_below ? floor_log10_of_three_quarters_of_two_to(q) : floor_log10_of_two_to(q);
  const int shift = q + floor_log2_of_ten_to(-k) + 1;
  const uint64_t power = kPowers[static_cast<size_t>(-k - kFirstPower)];
  const uint32_t low = round_to_odd(power, (4 * c - 2 + (nearer_below ? 1 : 0)) << shift) + (even ? 0 : 1);
  const uint32_t middle = round_to_odd(power, 4 * c << shift);
  const uint32_t high = round_to_odd(power, (4 * c + 2) << shift) - (even ? 0 : 1);

  const uint32_t s = middle / 4;
  if (s >= 10) {
    const uint32_t ten = s / 10;
    const bool below = low <= 40 * ten, above = 40 * ten + 40 <= high;
    if (below != above) return {ten + (above ? 1 : 0), k + 1};
  }
  const bool below = low <= 4 * s, above = 4 * s + 4 <= high;
  if (below != above) return {s + (above ? 1 : 0), k};
  const uint32_t half = 4 * s + 2;
  return {s + (middle > half || (middle == half && s % 2 == 1) ? 1 : 0), k};
}

void write_pair(uint32_t pair, char* out) { std::memcpy(out, &kPairs[size_t{2} * pair], 2); }

/// All nine, zeros in front.
void write_nine(uint32_t digits, char* out) {
  const uint32_t high = digits / 10'000, low = digits % 10'000;  // five and four
  out[0] = static_cast<char>('0' + high / 10'000);
  write_pair(high % 10'000 / 100, out + 1);
  write_pair(high % 100, out + 3);
  write_pair(low / 100, out + 5);
  write_pair(low % 100, out + 7);
}

char* write_exponent(int exponent, char* out) {
  *out++ = 'e';
  *out++ = exponent < 0 ? '-' : '+';
  write_pair(static_cast<uint32_t>(exponent < 0 ? -exponent : exponent), out);
  return out + 2;
}

}  // namespace

char* write_shortest_float(float value, char* out) {
  const auto bits = std::bit_cast<uint32_t>(value);
  *out = '-';
  out += bits >> 31;
  if ((bits << 1) == 0) {
    return std::copy_n("0.0", 3, out);
  }
  Decimal decimal = shortest(bits & ((uint32_t{1} << kHidden) - 1), static_cast<int>(bits >> kHidden & 0xff));
  while (decimal.digits % 10 == 0) {
    decimal.digits /= 10;
    ++decimal.exponent;
  }
  char nine[24] = {};
  write_nine(decimal.digits, nine);
  const char* first = nine;
  while (*first == '0') ++first;
  const auto count = static_cast<int>(nine + 9 - first);
  const int point = count + decimal.exponent;  // digits before it; those behind the last are zeros

  if (point > kMostPoint || point < kLeastPoint) {
    *out++ = first[0];
    if (count > 1) {
      *out++ = '.';
      std::memcpy(out, first + 1, 8);
      out += count - 1;
    }
    return write_exponent(point - 1, out);
  }
  if (point <= 0) {
    std::copy_n("0.00000", 7, out);
    out += 2 - point;
    std::memcpy(out, first, 9);
    return out + count;
  }
  if (decimal.exponent >= 0) {
    std::memset(out, '0', static_cast<size_t>(kMostPoint));
    std::memcpy(out, first, static_cast<size_t>(count));
    return std::copy_n(".0", 2, out + point);
  }
  std::memcpy(out, first, 9);
  std::memcpy(out + point + 1, first + point, 9);
  out[point] = '.';
  return out + count + 1;
}

size_t write_floats(const float* values, size_t count, char*& out) {
  static const bool able = __builtin_cpu_supports("avx2");
  return able ? write_floats_avx2(values, count, out) : 0;
}

}  // namespace serin::protocol
