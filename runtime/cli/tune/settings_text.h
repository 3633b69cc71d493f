// settings_text.h: changes single keys of a serin.yaml, and leaves its other lines and comments as they are.
#pragma once

#include <map>
#include <string>

#include "runtime/base/result.h"

namespace serin::cli {

/// Replaces top-level keys of a YAML map in block style, or adds them at the end. An empty value removes the key. kUnsupported: the text is
/// a map in flow style ({a: 1}), whose lines are not its keys.
Result<std::string> with_keys(const std::string& text, const std::map<std::string, std::string>& values);

}  // namespace serin::cli
