// stable_hash.h: Hashes that must be the same in every process and after every restart. Not for tables that an attacker can fill.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace serin {

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of the input affects every bit of the output. Applied to x, x +
/// kGolden, x + 2 kGolden ... it is that generator.
inline uint64_t mix(uint64_t x) {
  x += kGolden;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// FNV-1a, finished by mix().
inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mix(hash);
}

/// For long texts: eight bytes at a time.
inline uint64_t hash_words(std::string_view text) {
  constexpr uint64_t kOdd = 0xff51afd7ed558ccd;
  constexpr int kTurn = 29;
  uint64_t hash = mix(text.size());
  uint64_t word = 0;
  for (; text.size() >= sizeof word; text.remove_prefix(sizeof word)) {
    std::memcpy(&word, text.data(), sizeof word);
    hash = std::rotl((hash ^ word) * kOdd, kTurn);
  }
  return hash_text(text, hash);
}

/// The key of a sticky request: another salt places it elsewhere.
inline uint64_t hash_key(std::string_view key, std::string_view salt) { return hash_text(key, hash_text(salt)); }

}  // namespace serin
