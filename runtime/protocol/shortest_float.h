// shortest_float.h: a float as the shortest text that reads back to the same float, and of those the nearest to it.
//
//   char text[kShortestFloatBytes];
//   const char* end = write_shortest_float(0.1f, text);      // 0.1
//
// Finite values only. What is neither very large nor very small has no exponent; -0 is "-0.0", because "-0" is an integer to most readers of JSON.
#pragma once

#include <cstddef>

namespace serin::protocol {

inline constexpr size_t kShortestFloatBytes = 32;  ///< that may be written to, though no text is longer than 17
char* write_shortest_float(float value, char* out);

/// Of many, as many from the front as can be written eight at a time, a comma behind each, in a quarter of the time; whole ones as 1.0 if `with_point`. Returns
/// how many. Those behind are fewer than eight, or the machine cannot, or among the next eight is one that is to be written alone (subnormal, not finite, a whole
/// one of more than 13 digits with its point).
size_t write_floats(const float* values, size_t count, bool with_point, char*& out);

}  // namespace serin::protocol
