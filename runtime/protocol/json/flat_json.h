// flat_json.h: reads the small bodies of admin requests: an object with plain values, such as {"parameters": {"unload_dependents": true}}.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/result.h"

namespace serin::protocol {

/// null, a boolean, an integer, a text, or a list of texts.
using FlatValue = std::variant<std::monostate, bool, int64_t, std::string, std::vector<std::string>>;
using FlatValues = std::map<std::string, FlatValue, std::less<>>;

/// Reads the object under the key `under`, or the whole body if `under` is empty. Returns no values if there is no body or no such key.
Result<FlatValues> decode_flat_json(std::string body, std::string_view under = {});
std::string encode_flat_json(const FlatValues& values);

/// Decodes base64; `name` is for the message.
Result<std::string> decode_base64_value(std::string_view text, std::string_view name);

}  // namespace serin::protocol
