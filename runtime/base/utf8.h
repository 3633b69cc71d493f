// utf8.h: checks and cuts UTF-8 text, as kernels/utf8.h reads it.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/utf8.h"

namespace serin {

bool is_utf8(std::string_view bytes);
/// The longest prefix of a text, at most `most` bytes, that ends with a whole character.
std::string_view utf8_prefix(std::string_view text, size_t most);

}  // namespace serin
