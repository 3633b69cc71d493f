// json_words.h: accepts NaN, Infinity and -Infinity in JSON. Python and TensorFlow Serving's clients write them; simdjson refuses them.
//
// A text is searched for them only after it was refused. Each word is replaced in place by a string of the same length, so that offsets
// stay. The string contains a control character and text that no client would send. Internal to runtime/protocol.
#pragma once

#include <simdjson.h>

#include <optional>
#include <span>
#include <string_view>

namespace serin::protocol {

/// White space between the tokens of JSON.
inline constexpr std::string_view kSpaces = " \t\r\n";

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns the position after the string whose first quote is at `at`.
size_t skip_string(std::string_view text, size_t at);
/// Marks all such words outside strings and returns whether there were any. `in_lists`: only words that are elements of a list. A text that
/// contains the control character itself, in any spelling, is not marked.
bool mark_number_words(std::span<char> text, bool in_lists = false);
/// Returns the number of a marked word.
std::optional<double> number_word(const simdjson::dom::element& element);

}  // namespace serin::protocol
