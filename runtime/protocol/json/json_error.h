// json_error.h: finds the position at which a text stops being JSON, or a number that no datatype can represent. Internal to
// runtime/protocol.
//
// It runs only after simdjson, which reports no position, has refused the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace serin::protocol {

/// Returns "syntax error at 11, before 'NaN]}'" or "input 'x': /inputs/0/data/7 is 1e400, more than a number of any datatype, at 57".
/// Returns nothing in other cases.
std::optional<std::string> explain_json_error(std::string_view text);

}  // namespace serin::protocol
