// target.h: decodes a request target into path and query.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/net/message/refusal.h"

namespace serin::net {

/// Splits "/a%20b?x=1" into path "/a b" and query "x=1". It refuses forms that other software could read as another path: broken escapes,
/// escaped slashes, NUL and control characters, invalid UTF-8, segments "." and "..". "//" and ";" stay unchanged.
std::optional<Refusal> decode_target(std::string_view target, std::string& path, std::string& query);

/// The reverse: everything except letters, digits, "-._~" and the characters in `kept` becomes %XX.
void append_escaped(std::string_view text, std::string_view kept, std::string& out);
/// Escapes one segment of a path, or one value of a form.
std::string escaped(std::string_view text);

}  // namespace serin::net
