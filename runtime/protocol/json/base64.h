// base64.h: bytes as text (RFC 4648, 4), as JSON has to carry them. Internal to runtime/protocol.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace serin::protocol {

std::string encode_base64(std::string_view bytes);
/// Nothing where it is no base64. The padding may be left out.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace serin::protocol
