// shortest_float.h: writes a float as the shortest text that reads back to the same float, and among those the nearest.
//
//   char text[kShortestFloatBytes];
//   const char* end = write_shortest_float(0.1f, text);      // 0.1
//
// Finite values only. Values of ordinary size have no exponent, but a point (1.0, -0.0), for readers that distinguish integers from floats.
#pragma once

#include <cstddef>

namespace serin::protocol {

inline constexpr size_t kShortestFloatBytes = 32;  ///< bytes that may be written, although no text is longer than 17
char* write_shortest_float(float value, char* out);

/// Writes values from the front, eight at a time, each followed by a comma, in a quarter of the time; returns their number. It stops if
/// fewer than eight are left, if the machine lacks the instructions, or if one of the next eight is subnormal or not finite.
size_t write_floats(const float* values, size_t count, char*& out);

}  // namespace serin::protocol
