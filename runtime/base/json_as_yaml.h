// json_as_yaml.h: rewrites JSON so that yaml-cpp, which does not accept all JSON, can read it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace serin::config {

/// Returns nothing if the text is no JSON. Line numbers stay. Column numbers change only behind a character that was written as a surrogate
/// pair.
std::optional<std::string> json_as_yaml(std::string_view text);

}  // namespace serin::config
