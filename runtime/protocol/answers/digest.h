// digest.h: a number for a sequence of texts, to see whether two of them are the same. The same in this process only; not for what an attacker
// gains from a collision.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace serin::protocol {

/// `before`: 0, or the digest of the texts that come before this one. Never 0.
inline uint64_t digest(uint64_t before, std::string_view text) {
  return (before * 0x9e3779b97f4a7c15 ^ std::hash<std::string_view>()(text)) | 1;
}

}  // namespace serin::protocol
