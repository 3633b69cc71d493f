// number.h: parses a number from a whole text, without spaces, '+' or trailing characters.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>

namespace serin {

/// Returns nothing if the text is no number or T cannot represent it. For floating-point types, infinities and NaN are refused too.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

/// The same for an integer in hexadecimal digits, without a prefix.
template <class T>
std::optional<T> parse_hex(std::string_view digits) {
  constexpr int kHex = 16;
  T value{};
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value, kHex);
  if (failure != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace serin
