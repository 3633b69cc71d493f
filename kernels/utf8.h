// utf8.h: Reads and writes the characters of UTF-8 text (RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF).
//
// The one reader of Serin: text operators decode with it, and runtime/base/utf8.h checks text from the network with it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace serin {

/// Length of the character at the start of `bytes`, or 0 if there is none.
constexpr size_t utf8_sequence(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < bytes.size() && byte(i) >= low && byte(i) <= high;
  };
  if (bytes.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;  // overlong; surrogates
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;  // overlong; over U+10FFFF
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

/// The same, and the character.
constexpr size_t decode_utf8(std::string_view bytes, char32_t& code) {
  const size_t length = utf8_sequence(bytes);
  if (length == 0) return 0;
  const auto first = static_cast<unsigned char>(bytes[0]);
  code = length == 1 ? first : first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(bytes[i]) & 0x3F);
  return length;
}

inline void encode_utf8(char32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned char kLeads[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kLeads[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

}  // namespace serin
