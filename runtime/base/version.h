// version.h: the name and version of this program.
#pragma once

#include <string_view>

namespace serin {

inline constexpr std::string_view kName = "serin";
inline constexpr std::string_view kVersion = SERIN_VERSION;

}  // namespace serin
