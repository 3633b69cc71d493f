// json_error.h: where a text stops being JSON, or has a number that nothing holds. Asked only after simdjson, which does not say where, has refused it. Internal to runtime/protocol.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace serin::protocol {

/// "syntax error at 11, before 'NaN]}'"; "input 'x': /inputs/0/data/7 is 1e400, more than a number of any datatype, at 57"; nothing where neither is the case.
std::optional<std::string> explain_json_error(std::string_view text);

}  // namespace serin::protocol
