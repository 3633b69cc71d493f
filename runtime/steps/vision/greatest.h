// greatest.h: the greatest of many scores, which is most of the time that a head or a recogniser's output takes to read. The vectors are
// needed because a compiler must not reorder a maximum of floats by itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

namespace serin::steps {

struct Greatest {
  size_t index = 0;  ///< of the first one of equal values
  float value = -std::numeric_limits<float>::infinity();
  bool nan = false;  ///< one of the values is NaN; it is not the greatest
};

inline Greatest greatest_of(std::span<const float> values) {
  using Floats = float __attribute__((vector_size(16)));
  using Bits = int __attribute__((vector_size(16)));
  constexpr size_t kLanes = 16;
  constexpr size_t kVectors = kLanes / 4;
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const float* const from = values.data();
  const auto load = [from](size_t i) {
    Floats vector;
    std::memcpy(&vector, from + i, sizeof(vector));
    return vector;
  };
  Floats best[kVectors];
  Bits unordered{};
  for (Floats& vector : best) vector = Floats{kLeast, kLeast, kLeast, kLeast};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t v = 0; v < kVectors; ++v) {
      const Floats vector = load(i + 4 * v);
      best[v] = vector > best[v] ? vector : best[v];
      unordered |= vector != vector;
    }
  }
  Greatest found;
  found.nan = (unordered[0] | unordered[1] | unordered[2] | unordered[3]) != 0;
  for (const Floats& vector : best)
    for (int lane = 0; lane < 4; ++lane) found.value = std::max(found.value, vector[lane]);
  for (; i < values.size(); ++i) {
    found.nan |= std::isnan(from[i]);
    if (from[i] > found.value) found.value = from[i];
  }

  size_t block = 0;  // without the one that holds it: whole blocks are compared at once
  for (; block + kLanes <= values.size(); block += kLanes) {
    Bits same{};
    for (size_t v = 0; v < kVectors; ++v) same |= load(block + 4 * v) == found.value;
    if ((same[0] | same[1] | same[2] | same[3]) != 0) break;
  }
  const auto rest = values.subspan(block);
  const auto place = std::ranges::find(rest, found.value);
  found.index = place == rest.end() ? 0 : block + static_cast<size_t>(place - rest.begin());
  return found;
}

}  // namespace serin::steps
