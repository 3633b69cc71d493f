// json_write.h: values as JSON, appended to a text. std::to_chars gives the shortest text that reads back to the same number.
// Internal to runtime/protocol.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "kernels/tensor.h"

namespace serin::protocol {

struct NumberStyle {
  bool point = false;  ///< whole floats as 1.0, which readers that tell integers from floats need
};

/// NaN and infinities as the bare tokens that tritonclient and TensorFlow Serving's clients read.
template <class T>
void append_number(std::string& out, T value, NumberStyle style = {}) {
  char text[32];
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) {
      out += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
      return;
    }
    if (value == 0 && std::signbit(value)) {
      out += "-0.0";  // "-0" is an integer to most readers, which has no sign
      return;
    }
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    out.append(text, end);
    if (style.point && std::string_view(text, end).find_first_of(".e") == std::string_view::npos) out += ".0";
  } else {
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }
}

void append_string(std::string& out, std::string_view text);
/// JSON is UTF-8. Bytes that are not become the characters of their numbers, so that the rest of the answer can still be read.
void append_text(std::string& out, std::string_view text);

/// The elements from `first` to `last` in row-major order, commas between them.
void append_elements(std::string& out, const TensorView& tensor, int64_t first, int64_t last, NumberStyle style = {});

}  // namespace serin::protocol
