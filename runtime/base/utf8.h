// utf8.h: checks and cuts UTF-8 text (RFC 3629: no overlong forms, no surrogates).
#pragma once

#include <cstddef>
#include <string_view>

namespace serin {

bool is_utf8(std::string_view bytes);
/// Length of the UTF-8 sequence at the start, or 0 if there is none.
size_t utf8_sequence(std::string_view bytes);
/// The longest prefix of a text, at most `most` bytes, that ends with a whole character.
std::string_view utf8_prefix(std::string_view text, size_t most);

}  // namespace serin
