// utf8.h: which bytes are text (RFC 3629: no overlong forms, no surrogates).
#pragma once

#include <cstddef>
#include <string_view>

namespace serin {

bool is_utf8(std::string_view bytes);
/// Length of the UTF-8 sequence at the start, or 0 where it is not one.
size_t utf8_sequence(std::string_view bytes);
/// The longest beginning of a text, at most so many bytes, that ends with a whole character.
std::string_view utf8_prefix(std::string_view text, size_t most);

}  // namespace serin
