// nearest_name.h: what somebody may have meant who wrote a name wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <vector>

namespace serin {

/// How many letters must be put in, taken out, changed or swapped with their neighbour to make one name of the other (optimal string alignment).
inline size_t edit_distance(std::string_view from, std::string_view to) {
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

/// The nearest of the names; empty where none is near: a third of the letters may be wrong.
template <class Names>
std::string_view nearest_name(std::string_view name, const Names& names) {
  constexpr size_t kLongest = 64, kMost = 1000;
  std::string_view nearest;
  size_t distance = name.size() / 3 + 1, looked_at = 0;
  if (name.size() > kLongest) return nearest;
  for (const std::string_view candidate : names) {
    if (candidate.size() > kLongest || ++looked_at > kMost) continue;
    if (const size_t own = edit_distance(name, candidate); own < distance) {
      distance = own;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace serin
