// json_as_yaml.cc: rewrites two forms that JSON writers use and yaml-cpp refuses.
//
//   "\ud83d\ude00"     a character beyond 16 bits as two escapes, neither of which is a character: becomes the character itself
//   "key"\n : 1        a line break before a colon: what stands before the colon goes behind it
//
// Whether the text is JSON is the JSON library's to say; here it is known to be.

#include "runtime/base/json_as_yaml.h"

#include <boost/json.hpp>
#include <charconv>

namespace serin::config {
namespace {

constexpr size_t kEscape = 6;  // \uXXXX

/// The number of the \uXXXX at `at`; 0 where there is none.
uint32_t escape_at(std::string_view text, size_t at) {
  if (text.size() < at + kEscape || text[at] != '\\' || text[at + 1] != 'u') return 0;
  uint32_t value = 0;
  std::from_chars(text.data() + at + 2, text.data() + at + kEscape, value, 16);
  return value;
}

void append_utf8(std::string& to, uint32_t character) {  // of four bytes
  to += static_cast<char>(0xF0 | character >> 18);
  for (const int shift : {12, 6, 0}) to += static_cast<char>(0x80 | (character >> shift & 0x3F));
}

/// The string that begins at `at`; returns where it ends.
size_t copy_string(std::string_view text, size_t at, std::string& to) {
  to += text[at++];
  while (text[at] != '"') {
    const uint32_t high = escape_at(text, at);
    if (high >= 0xD800 && high < 0xDC00) {
      append_utf8(to, 0x10000 + ((high - 0xD800) << 10) + (escape_at(text, at + kEscape) - 0xDC00));
      at += 2 * kEscape;
      continue;
    }
    const size_t length = text[at] == '\\' ? 2 : 1;
    to += text.substr(at, length);
    at += length;
  }
  to += '"';
  return at + 1;
}

}  // namespace

std::optional<std::string> json_as_yaml(std::string_view text) {
  boost::system::error_code failure;
  (void)boost::json::parse({text.data(), text.size()}, failure);
  if (failure) return std::nullopt;
  std::string yaml;
  yaml.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = copy_string(text, at, yaml);
      continue;
    }
    if (text[at] == ':')
      yaml.insert(yaml.find_last_not_of(" \t\r\n") + 1, 1, ':');
    else
      yaml += text[at];
    ++at;
  }
  return yaml;
}

}  // namespace serin::config
