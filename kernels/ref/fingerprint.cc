// fingerprint.cc: Fingerprint64 of FarmHash (github.com/google/farmhash, farmhashna). Texts of up to 16, 32, 64 and more bytes are hashed in
// different ways.

#include "kernels/ref/fingerprint.h"

#include <bit>
#include <cstring>
#include <utility>

namespace serin::kernels::ref {

namespace {

constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

template <class T = uint64_t>
uint64_t fetch(const char* from) {
  T value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

uint64_t turn(uint64_t value, int bits) { return std::rotr(value, bits); }
uint64_t mix(uint64_t value) { return value ^ (value >> 47); }

uint64_t join(uint64_t u, uint64_t v, uint64_t factor) {
  const uint64_t a = mix((u ^ v) * factor);
  return mix((v ^ a) * factor) * factor;
}

uint64_t hash_up_to_16(const char* s, uint64_t size) {
  const uint64_t factor = k2 + size * 2;
  if (size >= 8) {
    const uint64_t a = fetch(s) + k2, b = fetch(s + size - 8);
    return join(turn(b, 37) * factor + a, (turn(a, 25) + b) * factor, factor);
  }
  if (size >= 4) return join(size + (fetch<uint32_t>(s) << 3), fetch<uint32_t>(s + size - 4), factor);
  if (size == 0) return k2;
  const auto at = [&](uint64_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(s[i])); };
  const uint32_t y = at(0) + (at(size >> 1) << 8), z = static_cast<uint32_t>(size) + (at(size - 1) << 2);
  return mix(y * k2 ^ z * k0) * k2;
}

uint64_t hash_up_to_64(const char* s, uint64_t size) {
  const uint64_t factor = k2 + size * 2, end = fetch(s + size - 16) * k2;
  if (size <= 32) {
    const uint64_t a = fetch(s) * k1, b = fetch(s + 8), c = fetch(s + size - 8) * factor;
    return join(turn(a + b, 43) + turn(c, 30) + end, a + turn(b + k2, 18) + c, factor);
  }
  const uint64_t a = fetch(s) * k2, b = fetch(s + 8), c = fetch(s + size - 8) * factor;
  const uint64_t y = turn(a + b, 43) + turn(c, 30) + end, z = join(y, a + turn(b + k2, 18) + c, factor);
  const uint64_t e = fetch(s + 16) * factor, f = fetch(s + 24);
  const uint64_t g = (y + fetch(s + size - 32)) * factor, h = (z + fetch(s + size - 24)) * factor;
  return join(turn(e + f, 43) + turn(g, 30) + h, e + turn(f + a, 18) + g, factor);
}

using Pair = std::pair<uint64_t, uint64_t>;

Pair hash_32_bytes(const char* s, uint64_t a, uint64_t b) {
  const uint64_t w = fetch(s), x = fetch(s + 8), y = fetch(s + 16), z = fetch(s + 24);
  a += w;
  b = turn(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += turn(a, 44);
  return {a + z, b + c};
}

}  // namespace

uint64_t fingerprint64(std::string_view text) {
  const char* s = text.data();
  const uint64_t size = text.size();
  if (size <= 16) return hash_up_to_16(s, size);
  if (size <= 64) return hash_up_to_64(s, size);
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed * k2 + fetch(s), y = kSeed * k1 + 113, z = mix(y * k2 + 113) * k2;
  Pair v{0, 0}, w{0, 0};
  const char* const end = s + (size - 1) / 64 * 64;
  for (; s != end; s += 64) {
    x = turn(x + y + v.first + fetch(s + 8), 37) * k1;
    y = turn(y + v.second + fetch(s + 48), 42) * k1;
    x ^= w.second;
    y += v.first + fetch(s + 40);
    z = turn(z + w.first, 33) * k1;
    v = hash_32_bytes(s, v.second * k1, x + w.first);
    w = hash_32_bytes(s + 32, z + w.second, y + fetch(s + 16));
    std::swap(z, x);
  }
  const uint64_t factor = k1 + ((z & 0xFF) << 1);
  s = text.data() + size - 64;
  w.first += (size - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  x = turn(x + y + v.first + fetch(s + 8), 37) * factor;
  y = turn(y + v.second + fetch(s + 48), 42) * factor;
  x ^= w.second * 9;
  y += v.first * 9 + fetch(s + 40);
  z = turn(z + w.first, 33) * factor;
  v = hash_32_bytes(s, v.second * factor, x + w.first);
  w = hash_32_bytes(s + 32, z + w.second, y + fetch(s + 16));
  std::swap(z, x);
  return join(join(v.first, w.first, factor) + mix(y) * k0 + z, join(v.second, w.second, factor) + x, factor);
}

uint64_t joined_fingerprint(uint64_t a, uint64_t b) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  const uint64_t both = (a ^ kFactor ^ mix(b * kFactor) * kFactor) * kFactor;
  return mix(mix(both) * kFactor);
}

}  // namespace serin::kernels::ref
