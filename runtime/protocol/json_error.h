// json_error.h: where a text stops being JSON. Asked only after simdjson, which does not say where, has refused it. Internal to runtime/protocol.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace serin::protocol {

/// "syntax error at 11, before 'NaN]}'"; nothing where the text is JSON by the letter (1e400 is).
std::optional<std::string> explain_json_error(std::string_view text);

}  // namespace serin::protocol
