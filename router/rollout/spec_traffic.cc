// spec_traffic.cc: which versions, and who goes to the canary.
//
//   canary: {version: 4, baseline: 3-fresh, sticky: {header: x-user}, cohort: {header: x-cohort, values: [beta]}}

#include <fmt/format.h>

#include <algorithm>

#include "router/rollout/spec.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

using config::Node;

constexpr size_t kMostCohorts = 100;
constexpr size_t kLongestValue = 256;

/// stable: 3 or {version: 3}
Result<std::string> read_version(const Node& node, std::initializer_list<std::string_view> keys) {
  if (node.is_scalar()) return node.text();
  SERIN_CHECK(node.allow_only(keys));
  SERIN_TRY(const Node version, node.at("version"));
  return version.text();
}

Result<std::string> read_token(const Node& node) {
  SERIN_TRY(std::string name, node.text());
  if (!is_token(name)) return node.error("must be the name of a header or cookie");
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name;
}

Status read_sticky(const Node& node, Sticky& sticky) {
  SERIN_CHECK(node.allow_only({"header", "cookie", "salt", "bothArms"}));
  if (node.has("header") == node.has("cookie")) return node.error("must name a header or a cookie: {header: x-user} or {cookie: session}");
  if (const auto header = node.find("header")) {
    SERIN_TRY(sticky.header, read_token(*header));
  }
  if (const auto cookie = node.find("cookie")) {
    SERIN_TRY(sticky.cookie, cookie->text());
    if (!is_token(sticky.cookie)) return cookie->error("must be the name of a cookie");
  }
  SERIN_TRY(sticky.salt, node.text("salt", ""));
  SERIN_TRY(const bool both, node.boolean("bothArms", true));
  return both ? Status() : node.find("bothArms")->error("keys are placed by their hash, which keeps them on stable as well: leave it out");
}

Status read_cohort(const Node& node, Cohort& cohort) {
  SERIN_CHECK(node.allow_only({"header", "values"}));
  SERIN_TRY(const Node header, node.at("header"));
  SERIN_TRY(cohort.header, read_token(header));
  SERIN_TRY(const Node values, node.at("values"));
  const auto items = values.items();
  if (items.empty() || items.size() > kMostCohorts) return values.error(fmt::format("must be a list of 1 to {} values", kMostCohorts));
  for (const Node& item : items) {
    SERIN_TRY(std::string value, item.text());
    if (value.empty() || value.size() > kLongestValue) return item.error(fmt::format("must be 1 to {} characters", kLongestValue));
    cohort.values.push_back(std::move(value));
  }
  return {};
}

Status read_canary(const Node& canary, Spec& spec) {
  SERIN_TRY(spec.canary, read_version(canary, {"version", "baseline", "sticky", "cohort"}));
  if (spec.canary.empty()) return canary.error("must not be empty");
  if (!canary.is_map()) return {};
  if (const auto baseline = canary.find("baseline")) {
    SERIN_TRY(spec.baseline, baseline->text());
    if (spec.baseline.empty() || spec.baseline == "auto")
      return baseline->error("must name a version of the service that runs stable's model on replicas like the canary's");
    if (spec.baseline == spec.canary) return baseline->error("is the canary itself");
  }
  if (const auto sticky = canary.find("sticky")) SERIN_CHECK(read_sticky(*sticky, spec.sticky));
  if (const auto cohort = canary.find("cohort")) SERIN_CHECK(read_cohort(*cohort, spec.cohort));
  return {};
}

}  // namespace

bool is_token(std::string_view name) {
  const auto allowed = [](char c) {
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return alphanumeric || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, allowed);
}

Status read_traffic(const Node& document, Spec& spec) {
  SERIN_TRY(const Node service, document.at("service"));
  SERIN_TRY(spec.service, service.text());
  if (spec.service.empty()) return service.error("must not be empty");
  SERIN_TRY(const Node canary, document.at("canary"));
  SERIN_CHECK(read_canary(canary, spec));
  if (const auto stable = document.find("stable")) {
    SERIN_TRY(spec.stable, read_version(*stable, {"version"}));
    if (spec.baseline == spec.stable) spec.baseline.clear();  // compared with stable itself
  }
  if (spec.canary == spec.stable)
    return canary.error(fmt::format("canary and stable are both version '{}'; they must differ", spec.canary));
  return {};
}

}  // namespace serin::rollout
