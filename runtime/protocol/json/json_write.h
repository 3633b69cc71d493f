// json_write.h: appends values to a text as JSON. Floats are the shortest text that reads back to the same number.
//
// Internal to runtime/protocol, and to gRPC messages that are written as JSON (serving/message_json.h).
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/protocol/json/shortest_float.h"

namespace serin::protocol {

inline constexpr size_t kNumberBytes = 40;  ///< room that write_number() needs

/// Writes floats with a point or an exponent, for readers that distinguish integers from floats. NaN and infinities are the bare tokens
/// that tritonclient and TensorFlow Serving's clients read.
template <class T>
char* write_number(char* out, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) {
      const std::string_view word = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
      return out + word.copy(out, word.size());
    }
    if constexpr (std::is_same_v<T, float>) return write_shortest_float(value, out);
    char* const end = std::to_chars(out, out + kNumberBytes, value).ptr;
    return std::string_view(out, end).find_first_of(".e") == std::string_view::npos ? std::copy_n(".0", 2, end) : end;
  } else {
    return std::to_chars(out, out + kNumberBytes, value).ptr;
  }
}

template <class T>
void append_number(std::string& out, T value) {
  char text[kNumberBytes];
  out.append(text, write_number(text, value));
}

void append_string(std::string& out, std::string_view text);
/// JSON is UTF-8. Each invalid byte becomes the character of its number, so that clients can still read the rest of the answer.
void append_text(std::string& out, std::string_view text);

/// Appends the elements from `first` to `last` in row-major order, separated by commas.
void append_elements(std::string& out, const TensorView& tensor, int64_t first, int64_t last);

/// Appends the elements in lists nested like the shape; a tensor without axes is not a list. append_run(first, last) writes the elements of
/// one list.
template <class AppendRun>
void append_nested(std::string& out, const Shape& shape, size_t axis, int64_t first, int64_t elements, const AppendRun& append_run) {
  if (axis >= shape.rank()) return append_run(first, first + elements);
  out += '[';
  if (axis + 1 == shape.rank()) {
    append_run(first, first + elements);
  } else {
    for (int64_t i = 0; i < shape[axis]; ++i) {
      if (i > 0) out += ',';
      append_nested(out, shape, axis + 1, first + i * (elements / shape[axis]), elements / shape[axis], append_run);
    }
  }
  out += ']';
}
inline void append_nested(std::string& out, const TensorView& tensor) {
  append_nested(out, tensor.shape, 0, 0, tensor.elements(),
                [&](int64_t first, int64_t last) { append_elements(out, tensor, first, last); });
}

}  // namespace serin::protocol
