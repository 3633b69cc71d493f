// flat_json.h: the small bodies of orders to the server: an object whose values are plain, such as {"parameters": {"unload_dependents": true}}.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/result.h"

namespace serin::protocol {

/// null, true or false, a whole number, a text, a list of texts.
using FlatValue = std::variant<std::monostate, bool, int64_t, std::string, std::vector<std::string>>;
using FlatValues = std::map<std::string, FlatValue, std::less<>>;

/// Of the object under the key `under`, or, where that is empty, of the whole body. Nothing where there is no body, or no such key.
Result<FlatValues> decode_flat_json(std::string body, std::string_view under = {});
std::string encode_flat_json(const FlatValues& values);

/// What base64 stands for; `name` is for the message.
Result<std::string> decode_base64_value(std::string_view text, std::string_view name);

}  // namespace serin::protocol
