// base64.h: converts bytes to base64 text and back (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace serin {

std::string encode_base64(std::string_view bytes);
/// Returns nothing if the text is not base64. The padding may be missing.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace serin
