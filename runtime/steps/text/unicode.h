// unicode.h: what tokenisers ask about characters. The answers come from utf8proc (Unicode 15), but for those of unicode_differences.h. One table of
// two stages keeps them.
//
// All text here is valid UTF-8: Tokenizer::encode() has checked it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/utf8.h"
#include "runtime/steps/text/char_class.h"

namespace serin::steps::text {

class CharTable {
 public:
  /// Built once in a process, in some milliseconds.
  static const CharTable& get();

  uint16_t of(char32_t code) const { return blocks_[size_t{index_[code >> 8]} << 8 | (code & 0xFF)]; }
  uint16_t ascii(char byte) const { return blocks_[static_cast<unsigned char>(byte)]; }  // block 0 is the first

 private:
  CharTable();

  std::vector<uint16_t> index_;   // of 256 code points each
  std::vector<uint16_t> blocks_;  // equal ones are kept once
};

/// Reads the character at `at` and moves behind it. The text is valid, so its first byte tells its length.
inline char32_t next_char(const char*& at) {
  const auto byte = [at](int i) { return static_cast<unsigned char>(at[i]); };
  const char32_t first = byte(0);
  if (first < 0x80) {
    ++at;
    return first;
  }
  if (first < 0xE0) {
    const char32_t code = (first & 0x1F) << 6 | (byte(1) & 0x3Fu);
    at += 2;
    return code;
  }
  if (first < 0xF0) {
    const char32_t code = (first & 0x0F) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    at += 3;
    return code;
  }
  const char32_t code = (first & 0x07) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
  at += 4;
  return code;
}

/// Bytes of the character that begins with this byte.
inline size_t char_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

size_t count_chars(std::string_view text);
bool is_ascii(std::string_view text);

/// Appends the lower case of one character, without its neighbours: a final sigma stays an ordinary one, as in Rust.
void append_lower(char32_t code, std::string& out);

enum class Form : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

/// Unicode normalisation (UAX 15), in linear time but for the sorting of runs of combining marks, which is n log n.
std::string normalize(std::string_view text, Form form);

/// The same for characters: canonical decomposition, marks in order.
void decompose(std::string_view text, std::vector<int32_t>& codes);

/// Calls take(begin, end) for each extended grapheme cluster.
template <class F>
void each_grapheme(std::string_view text, F&& take);
bool grapheme_break(char32_t before, char32_t after, int32_t& state);

template <class F>
void each_grapheme(std::string_view text, F&& take) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const char* begin = at;
  char32_t before = 0;
  int32_t state = 0;
  while (at != end) {
    const char* const here = at;
    const char32_t code = next_char(at);
    if (here != text.data() && grapheme_break(before, code, state)) {
      take(begin, here);
      begin = here;
    }
    before = code;
  }
  if (begin != end) take(begin, end);
}

}  // namespace serin::steps::text
