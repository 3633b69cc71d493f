// names.cc: class names as Keras turns them into names of folders: two regular expressions, one after the other.

#include "runtime/formats/keras/names.h"

#include <cctype>

namespace serin::formats::keras {

std::string snake_case(std::string_view class_name) {
  std::string word;
  for (const char c : class_name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') word += c;
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  // A capital that begins a word of small letters starts a part, then one behind a small letter. Each step looks at the text of the step before.
  std::string first, result;
  for (size_t i = 0; i < word.size();) {
    if (i + 2 < word.size() && upper(word[i + 1]) && lower(word[i + 2])) {
      first += word[i];
      first += '_';
      first += word[i + 1];
      for (i += 2; i < word.size() && lower(word[i]); ++i) first += word[i];
    } else {
      first += word[i++];
    }
  }
  for (size_t i = 0; i < first.size(); ++i) {
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(first[i])));
    if (i + 1 < first.size() && lower(first[i]) && upper(first[i + 1])) result += '_';
  }
  return result;
}

}  // namespace serin::formats::keras
