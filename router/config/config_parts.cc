#include "router/config/config_parts.h"

#include <fmt/format.h>

#include <charconv>

namespace serin::router {

Result<Listen> read_listen(const config::Node& node) {
  SERIN_TRY(const std::string text, node.text());
  const auto refuse = [&] {
    return node.error(fmt::format("must be ADDRESS:PORT such as 127.0.0.1:8080 with a port from 0 to 65535, not '{}'", text));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return refuse();
  Listen listen{.address = text.substr(0, colon)};
  if (listen.address.starts_with('[') && listen.address.ends_with(']'))
    listen.address = listen.address.substr(1, listen.address.size() - 2);
  else if (listen.address.find(':') != std::string::npos)
    return refuse();  // an IPv6 address without brackets: its last group would be taken for a port
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data() + colon + 1, end, listen.port);
  if (failure != std::errc() || stop != end) return refuse();
  return listen;
}

Result<std::chrono::milliseconds> read_milliseconds(const config::Node& owner, std::string_view key, std::chrono::milliseconds fallback,
                                                    std::chrono::milliseconds least) {
  SERIN_TRY(const auto duration, owner.duration(key, fallback));
  const auto rounded = std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  if (rounded < least || rounded > std::chrono::hours(24))
    return owner.find(key)->error(fmt::format("must be from {} to 24h", config::print_duration(least)));
  return rounded;
}

}  // namespace serin::router
