// config_parts.h: Values that several sections of router.yaml have.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "router/config/config.h"
#include "runtime/base/config.h"

namespace serin::router {

inline constexpr size_t kLongestName = 128;

/// "127.0.0.1:8080", "[::1]:8080"
Result<Listen> read_listen(const config::Node& node);
/// The duration at `key`, at most a day; `fallback` if it is absent.
Result<std::chrono::milliseconds> read_milliseconds(const config::Node& owner, std::string_view key, std::chrono::milliseconds fallback,
                                                    std::chrono::milliseconds least = std::chrono::milliseconds(1));

}  // namespace serin::router
