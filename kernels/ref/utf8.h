// utf8.h: Decodes UTF-8 text into characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace serin::kernels::ref {

/// Bytes of the character at `i`; 0 if it is invalid.
inline size_t decode_utf8(std::string_view text, size_t i, char32_t& code) {
  const auto lead = static_cast<unsigned char>(text[i]);
  const size_t length = lead < 0x80 ? 1 : lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead >= 0xf5 || i + length > text.size()) return 0;
  code = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t k = 1; k < length; ++k) {
    const auto next = static_cast<unsigned char>(text[i + k]);
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3f);
  }
  return length;
}

inline void encode_utf8(char32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned char kLeads[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(kLeads[more] | code >> (6 * more));
  for (int k = more - 1; k >= 0; --k) text += static_cast<char>(0x80 | (code >> (6 * k) & 0x3f));
}

}  // namespace serin::kernels::ref
