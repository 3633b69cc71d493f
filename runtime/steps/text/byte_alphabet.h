// byte_alphabet.h: GPT-2's spelling of bytes as printable characters. Printable bytes stand for themselves; the other 68 are U+0100 to U+0143, in order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/utf8.h"

namespace serin::steps::text {

constexpr std::array<char32_t, 256> make_byte_alphabet() {
  std::array<char32_t, 256> letters{};
  char32_t others = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    letters[byte] = printable ? byte : others++;
  }
  return letters;
}

inline constexpr std::array<char32_t, 256> kByteAlphabet = make_byte_alphabet();

inline std::string spell_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) encode_utf8(kByteAlphabet[static_cast<unsigned char>(byte)], out);
  return out;
}

/// The bytes that a token spells. False: it has a character outside the alphabet.
inline bool read_bytes(std::string_view token, std::string& bytes) {
  constexpr auto kBytes = [] {
    std::array<int16_t, 0x144> table{};
    table.fill(-1);
    for (size_t byte = 0; byte < 256; ++byte) table[kByteAlphabet[byte]] = static_cast<int16_t>(byte);
    return table;
  }();
  bytes.clear();
  while (!token.empty()) {
    char32_t code = 0;
    const size_t size = decode_utf8(token, code);
    if (size == 0 || code >= kBytes.size() || kBytes[code] < 0) return false;
    bytes += static_cast<char>(kBytes[code]);
    token.remove_prefix(size);
  }
  return true;
}

}  // namespace serin::steps::text
