// names.h: names of a file as errors show them, and domains as they are compared.
#pragma once

#include <string>
#include <string_view>

namespace serin::formats::onnx {

inline constexpr size_t kLongestName = 120;  ///< of a name that is shown or made

/// Makes a name readable: cut if very long, control characters shown as '?'.
std::string printable(std::string_view name);
std::string quote(std::string_view name);  ///< the same in quotes

/// Returns "" for "ai.onnx", another name of the default domain.
std::string_view without_alias(std::string_view domain);

}  // namespace serin::formats::onnx
