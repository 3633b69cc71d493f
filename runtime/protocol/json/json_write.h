// json_write.h: values as JSON, appended to a text. Floats are the shortest text that reads back to the same number.
// Internal to runtime/protocol, and to messages of gRPC that are told as JSON (serving/message_json.h).
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

/// Floats with a point or an exponent, which readers that tell integers from floats need; NaN and infinities as the bare tokens that tritonclient and TensorFlow Serving's clients read.
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
/// JSON is UTF-8. Bytes that are not become the characters of their numbers, so that the rest of the answer can still be read.
void append_text(std::string& out, std::string_view text);

/// The elements from `first` to `last` in row-major order, commas between them.
void append_elements(std::string& out, const TensorView& tensor, int64_t first, int64_t last);

/// Its elements in lists within lists, as its shape is; a tensor without axes is no list. append_run(first, last) writes what lies in one list.
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
