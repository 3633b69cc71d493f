// number.h: the number that a text is: all of it, without spaces, '+' or anything behind.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>

namespace serin {

/// Nothing where the text is none, or one that T does not hold; of floating-point types also where it is not finite.
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

}  // namespace serin
