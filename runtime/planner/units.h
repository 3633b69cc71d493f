// units.h: prints quantities with three digits and a unit.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>

namespace serin::planner {

/// "7.71 G", "602 K"; `unit` follows: "7.71 GFLOP".
inline std::string short_number(double value, std::string_view unit) {
  constexpr std::string_view kPrefixes[] = {"", "K", "M", "G", "T", "P"};
  size_t prefix = 0;
  for (; value >= 999.5 && prefix + 1 < std::size(kPrefixes); ++prefix) value /= 1000;
  const int digits = value == 0 || (prefix == 0 && value >= 9.995) || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, digits, kPrefixes[prefix], unit);
}

inline std::string short_bytes(size_t bytes) { return short_number(static_cast<double>(bytes), "B"); }

}  // namespace serin::planner
