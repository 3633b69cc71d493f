#include "router/config/config_split.h"

#include <fmt/format.h>

#include <numeric>

#include "router/rollout/observation.h"
#include "router/rollout/spec_parts.h"

namespace serin::router {

using config::Node;

Result<PlainSplit> read_split(const Node& node, const ServiceConfig& service) {
  SERIN_CHECK(node.allow_only({"weights", "sticky"}));
  PlainSplit split{.ppm = std::vector<uint32_t>(service.versions.size())};
  SERIN_TRY(const Node weights, node.at("weights"));
  if (!weights.is_map()) return weights.error("must name versions and their weights: {\"1\": 70, \"2\": 30}");
  for (const std::string& version : weights.keys()) {
    const uint32_t index = version_index(service, version);
    SERIN_TRY(const Node weight, weights.at(version));
    if (index == Split::kNoCanary) return weight.error(fmt::format("service '{}' has no version '{}'", service.name, version));
    SERIN_TRY(const std::string text, weight.text());
    const auto ppm = rollout::parse_weight(text);
    if (!ppm) return weight.error(ppm.error().message);
    split.ppm[index] = *ppm;
  }
  const uint64_t sum = std::accumulate(split.ppm.begin(), split.ppm.end(), uint64_t{0});
  if (sum != rollout::kAll)
    return weights.error(fmt::format("must be 100 % together, not {} %", static_cast<double>(sum) / (rollout::kAll / 100)));
  if (const auto sticky = node.find("sticky")) {
    config::Problems problems;
    rollout::read_sticky(*sticky, split.sticky, problems);
    SERIN_CHECK(problems.first());
    // Every router and every restart places a key alike.
    if (split.sticky.salt.empty()) split.sticky.salt = service.name;
  }
  return split;
}

}  // namespace serin::router
