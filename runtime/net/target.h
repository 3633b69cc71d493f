// target.h: the path and query that a request target means.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/net/message/refusal.h"

namespace serin::net {

/// Splits "/a%20b?x=1" into path "/a b" and query "x=1". What could mean another path to somebody else is refused: broken escapes, escaped
/// slashes, NUL and control characters, bytes that are not UTF-8, segments "." and "..". "//" and ";" stay as they are.
std::optional<Refusal> decode_target(std::string_view target, std::string& path, std::string& query);

/// The other way: everything but letters, digits, "-._~" and the characters in `kept` becomes %XX.
void append_escaped(std::string_view text, std::string_view kept, std::string& out);
/// As one segment of a path, or one value of a form.
std::string escaped(std::string_view text);

}  // namespace serin::net
