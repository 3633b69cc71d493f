// assigning.h: Tells the client which version its request was drawn for, so that its outcome can be reported later (outcomes/assignment.h).
//
//   if (assigns(service)) placed.assigned = assign(service, lane, version, shares, key);
//   ...
//   add_assignment(service, placed.assigned, answer.headers);
//
// The version is that of the draw, also where stable answers instead. Whether it does depends on the version, so groups by answers could not be compared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "router/proxy/service.h"
#include "runtime/net/http.h"

namespace serin::router {

/// The index of a version, and its share of the draws in parts per million.
using VersionShare = std::pair<size_t, uint32_t>;

inline bool assigns(const Service& service) { return !service.config->outcomes.empty(); }

/// The text for a request for which `version` was drawn, among versions all of which could take it; empty: there is only one. key: of sticky requests.
std::string assign(const Service& service, Lane& lane, size_t version, std::span<const VersionShare> among, std::optional<uint64_t> key);

/// Adds the header, unless the text is empty, and removes any that the server sent.
void add_assignment(const Service& service, std::string_view assigned, net::Headers& headers);

}  // namespace serin::router
