// shortest_float_tables.h: powers of ten and their exponents, for both ways of printing a float. Internal to runtime/protocol.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace serin::protocol::schubfach {

constexpr int kHidden = 23, kBias = 150;           // for the significand as an integer
constexpr int kFirstPower = -31, kLastPower = 45;  // powers of ten that a binary32 needs
constexpr int kLeastPoint = -4,
              kMostPoint = 13;  // positions of the point, from before the first digit, that need no exponent

__extension__ using Wide = unsigned __int128;

/// The highest 64 bits of 10^power, rounded up.
consteval uint64_t power_of_ten(int power) {
  Wide five = 1;
  for (int i = 0; i < (power < 0 ? -power : power); ++i) five *= 5;
  if (power < 0) {  // 2^n / 5^-power, digit by digit
    uint64_t digits = 0;
    Wide rest = 1;
    while (digits >> 63 == 0) {
      rest <<= 1;
      digits = digits << 1 | (rest >= five ? 1 : 0);
      if (rest >= five) rest -= five;
    }
    return digits + (rest > 0 ? 1 : 0);
  }
  bool exact = true;
  while (five >> 64 != 0) {
    exact = exact && (five & 1) == 0;
    five >>= 1;
  }
  while (five >> 63 == 0) five <<= 1;
  return static_cast<uint64_t>(five) + (exact ? 0 : 1);
}

template <size_t... kIndex>
consteval auto powers_of_ten(std::index_sequence<kIndex...>) {
  return std::array{power_of_ten(kFirstPower + static_cast<int>(kIndex))...};
}
inline constexpr auto kPowers = powers_of_ten(std::make_index_sequence<kLastPower - kFirstPower + 1>());

}  // namespace serin::protocol::schubfach
