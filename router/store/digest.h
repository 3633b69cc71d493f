// digest.h: FNV-1a, 64 bits: identifies a string in a fixed-size slot, and detects a flipped bit in a stored row. Not secure against
// attackers.
#pragma once

#include <cstdint>
#include <string_view>

namespace serin::store {

inline constexpr uint64_t kDigestStart = 0xcbf29ce484222325;

constexpr uint64_t digest(std::string_view bytes, uint64_t from = kDigestStart) {
  for (const char c : bytes) from = (from ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return from;
}

}  // namespace serin::store
