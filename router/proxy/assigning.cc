#include "router/proxy/assigning.h"

#include <algorithm>
#include <vector>

#include "router/control/wall_clock.h"
#include "router/outcomes/assignment.h"
#include "router/outcomes/recent_ids.h"
#include "runtime/base/stable_hash.h"

namespace serin::router {

std::string assign(const Service& service, Lane& lane, size_t version, std::span<const VersionShare> among, std::optional<uint64_t> key) {
  std::string text;
  if (std::ranges::count_if(among, [](const VersionShare& share) { return share.second > 0; }) < 2) return text;
  std::vector<NamedShare> named;
  named.reserve(among.size());
  for (const auto& [index, ppm] : among) named.emplace_back(service.versions[index]->version(), ppm);
  // The outcomes of one user depend on each other: with its ID they count once.
  append_assignment(text, service.versions[version]->version(), named,
                    key ? RecentIds::of_user(mix(*key)) : RecentIds::of_request(lane.random()), static_cast<uint64_t>(wall_milliseconds()));
  return text;
}

void add_assignment(const Service& service, std::string_view assigned, net::Headers& headers) {
  if (!assigns(service)) return;
  headers.remove(kAssignedHeader);  // of another router behind this one
  if (!assigned.empty()) headers.add(kAssignedHeader, assigned);
}

}  // namespace serin::router
