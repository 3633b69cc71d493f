// nearest_name.h: finds the known name that a misspelled name most likely means.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace serin {

/// Compares names; ASCII capital letters equal small ones.
inline bool equal_but_for_case(std::string_view a, std::string_view b) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, small, small);
}

/// Removes the common beginning and end of both names; the distance does not depend on them.
inline void drop_common_ends(std::string_view& a, std::string_view& b) {
  const auto front = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  a.remove_prefix(front);
  b.remove_prefix(front);
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a.remove_suffix(1);
    b.remove_suffix(1);
  }
}

/// Number of letters to insert, delete, change or swap with a neighbour to turn one name into the other (optimal string alignment).
inline size_t edit_distance(std::string_view from, std::string_view to) {
  drop_common_ends(from, to);
  std::vector<size_t> before(to.size() + 1), row(to.size() + 1), next(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row.back();
}

/// Returns the nearest of the names, or an empty one if none is near. A third of the letters may be wrong, or the case of all.
template <class Names>
std::string_view nearest_name(std::string_view name, const Names& names) {
  constexpr size_t kLongest = 128, kMostWork = size_t{1} << 20;  // pairs of letters: a few milliseconds for any number of names
  std::string_view nearest;
  size_t distance = name.size() / 3 + 1, work = 0;
  if (name.size() > kLongest) return nearest;
  for (const std::string_view candidate : names) {
    const size_t more = std::max(candidate.size(), name.size()) - std::min(candidate.size(), name.size());
    if (more >= distance) continue;
    if (equal_but_for_case(name, candidate)) return candidate;
    std::string_view from = name, to = candidate;
    drop_common_ends(from, to);
    work += from.size() * to.size();
    if (work > kMostWork) break;
    if (const size_t own = edit_distance(from, to); own < distance) {
      distance = own;
      nearest = candidate;
    }
  }
  return nearest;
}

/// Returns "; did you mean 'digits'?", or an empty text if no name is near.
template <class Names>
std::string did_you_mean(std::string_view name, const Names& names) {
  const std::string_view meant = nearest_name(name, names);
  return meant.empty() ? std::string() : fmt::format("; did you mean '{}'?", meant);
}

}  // namespace serin
