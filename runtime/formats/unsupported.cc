// unsupported.cc: lists nodes, bounded.

#include "runtime/formats/unsupported.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace serin::formats {

Error unsupported_nodes(const std::vector<std::string>& nodes, std::string_view one, std::string_view many) {
  constexpr size_t kNamedAtOnce = 20;
  const size_t named = std::min(nodes.size(), kNamedAtOnce);
  const std::string more = nodes.size() > named ? fmt::format(" and {} more", nodes.size() - named) : "";
  return Error{Code::kUnsupported, fmt::format("{} {} not supported: {}{}", nodes.size(), nodes.size() == 1 ? one : many,
                                               fmt::join(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(named), ", "), more)};
}

}  // namespace serin::formats
