// shortest_float.h: a float as the shortest text that reads back to the same float, and of those the nearest to it.
//
//   char text[kShortestFloatBytes];
//   const char* end = write_shortest_float(0.1f, text);      // 0.1
//
// Finite values only. What is neither very large nor very small has no exponent, but a point: 1.0, -0.0, for readers that tell integers from floats.
#pragma once

#include <cstddef>

namespace serin::protocol {

inline constexpr size_t kShortestFloatBytes = 32;  ///< that may be written to, though no text is longer than 17
char* write_shortest_float(float value, char* out);

/// Of many, as many from the front as can be written eight at a time, a comma behind each, in a quarter of the time. Returns how many. Those behind are fewer
/// than eight, or the machine cannot, or among the next eight is one that is to be written alone: subnormal, or not finite.
size_t write_floats(const float* values, size_t count, char*& out);

}  // namespace serin::protocol
