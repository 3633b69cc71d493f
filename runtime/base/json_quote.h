// json_quote.h: Writes text as a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace serin {

/// Appends the text in quotes. Control characters are escaped; bytes that are not UTF-8 become U+FFFD.
void append_json_quoted(std::string& out, std::string_view text);

}  // namespace serin
