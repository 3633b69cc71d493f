// digest.h: hashes a sequence of texts, to test whether two sequences are equal.
//
// A digest is valid in this process only. Do not use it where an attacker gains from a collision.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace serin::protocol {

/// `before`: 0, or the digest of the preceding texts. Never returns 0.
inline uint64_t digest(uint64_t before, std::string_view text) {
  return (before * 0x9e3779b97f4a7c15 ^ std::hash<std::string_view>()(text)) | 1;
}

}  // namespace serin::protocol
