// text.h: the rules for names that printing and parsing share. A word is written as it is; any other name is quoted.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "runtime/graph/op.h"

namespace serin::graph {

inline bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
inline bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '?' || c == '$' || c == '@';
}
inline bool in_word(char c) { return starts_word(c) || is_digit(c) || c == '.' || c == '+' || c == '\'' || c == '-' || c == '~'; }

/// Length of the word at the start of `text`. It includes a colon in "onnx::Conv_1" and "split:0", but not in "k:i64".
inline size_t word_length(std::string_view text) {
  if (text.empty() || !starts_word(text[0])) return 0;
  size_t i = 1;
  for (; i < text.size(); ++i) {
    if (in_word(text[i])) continue;
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (text[i] == ':' && (text[i - 1] == ':' || is_digit(next) || (next == ':' && i + 2 < text.size() && in_word(text[i + 2])))) continue;
    break;
  }
  return i;
}

}  // namespace serin::graph
