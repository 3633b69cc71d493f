#include "runtime/protocol/json/wide_integers.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "runtime/base/number.h"
#include "runtime/protocol/json/json_words.h"

namespace serin::protocol {
namespace {

constexpr size_t kLeastDigits = 19, kMostDigits = 309;  // of what 64 bits do not hold, and of what a double does
constexpr int kDigits = 17;                             // that tell a double from all others

/// As JSON has it, of more than 64 bits.
bool is_wide_integer(std::string_view token) {
  const std::string_view digits = token.substr(token.starts_with('-'));
  if (digits.size() < kLeastDigits || digits.size() > kMostDigits || digits.front() == '0' || !std::ranges::all_of(digits, is_digit))
    return false;
  return !parse_number<int64_t>(token) && !parse_number<uint64_t>(token);
}

/// 100000000000000000001 becomes 10000000000000000e4 and spaces. False: no double holds it.
bool round_to_double(std::span<char> token) {
  const auto value = parse_number<double>({token.data(), token.size()});
  if (!value) return false;
  char text[32];  // -1.0000000000000000e+20
  const char* const end = std::to_chars(text, std::end(text), *value, std::chars_format::scientific, kDigits - 1).ptr;
  char* out = token.data();
  const char* from = text;
  for (; *from != 'e'; ++from)
    if (*from != '.') *out++ = *from;
  int exponent = 0;
  std::from_chars(from + 2, end, exponent);
  *out++ = 'e';
  out = std::to_chars(out, token.data() + token.size(), exponent - (kDigits - 1)).ptr;
  std::fill(out, token.data() + token.size(), ' ');
  return true;
}

}  // namespace

bool round_wide_integers(std::span<char> text) {
  const std::string_view whole(text.data(), text.size());
  bool found = false;
  for (size_t at = 0; at < whole.size();) {
    if (whole[at] == '"') {
      at = skip_string(whole, at);
    } else if (is_digit(whole[at]) || whole[at] == '-') {
      const size_t end = std::min(whole.find_first_not_of("+-.0123456789eE", at + 1), whole.size());
      if (is_wide_integer(whole.substr(at, end - at))) found |= round_to_double(text.subspan(at, end - at));
      at = end;
    } else {
      ++at;
    }
  }
  return found;
}

}  // namespace serin::protocol
