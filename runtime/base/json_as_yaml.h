// json_as_yaml.h: JSON is YAML, all but: what yaml-cpp does not take of it, spelled so that it does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace serin::config {

/// Nothing where the text is no JSON. Lines stay lines; a column is another one only behind a character that was spelled as a surrogate pair.
std::optional<std::string> json_as_yaml(std::string_view text);

}  // namespace serin::config
