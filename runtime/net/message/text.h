// text.h: the character classes of RFC 9110 and RFC 3986 for heads, trailers and targets. Bytes over 0x7F are in no class.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace serin::net::text {

enum Class : uint8_t {
  kToken = 1,       ///< for header names
  kValue = 2,       ///< for header values: visible characters, space, tab
  kTarget = 4,      ///< for request targets; includes '%'
  kHost = 8,        ///< for a Host: names, addresses, brackets, a port
  kMethod = 16,     ///< upper-case letters, '-', '_': narrower than a token, like every method in use
  kHexDigit = 32,   ///< for chunk sizes and percent escapes
  kWhitespace = 64  ///< space and tab
};

inline constexpr auto kClasses = [] {
  std::array<uint8_t, 256> table{};
  const auto mark = [&table](std::string_view characters, uint8_t classes) {
    for (const char c : characters) table[static_cast<unsigned char>(c)] |= classes;
  };
  for (unsigned c = 0x20; c < 0x7F; ++c) table[c] |= kValue;
  mark("\t", kValue);
  mark(" \t", kWhitespace);
  mark("ABCDEFGHIJKLMNOPQRSTUVWXYZ", kToken | kTarget | kHost | kMethod);
  mark("abcdefghijklmnopqrstuvwxyz0123456789", kToken | kTarget | kHost);
  mark("0123456789abcdefABCDEF", kHexDigit);
  mark("!#$%&'*+-.^_`|~", kToken);
  mark("-_", kMethod);
  mark("-._~!$&'()*+,;=:@/?%[]", kTarget);  // RFC 3986's characters; what it leaves out ("<>\^`{|} and '#') must come escaped
  mark("-._~:[]%", kHost);
  return table;
}();

constexpr bool is(char c, Class wanted) { return (kClasses[static_cast<unsigned char>(c)] & wanted) != 0; }

constexpr bool all(std::string_view text, Class wanted) {
  for (const char c : text)
    if (!is(c, wanted)) return false;
  return true;
}

constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && is(text.front(), kWhitespace)) text.remove_prefix(1);
  while (!text.empty() && is(text.back(), kWhitespace)) text.remove_suffix(1);
  return text;
}

/// Value of a hexadecimal digit.
constexpr unsigned hex_value(char c) {
  if (c <= '9') return static_cast<unsigned>(c - '0');
  return static_cast<unsigned>((c | 0x20) - 'a' + 10);
}

}  // namespace serin::net::text
