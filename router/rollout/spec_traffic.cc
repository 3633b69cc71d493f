// spec_traffic.cc: reads the versions, and the rules for which requests go to the canary.
//
//   canary: {version: 4, baseline: 3-fresh, sticky: {header: x-user}, cohort: {header: x-cohort, values: [beta]}}

#include <fmt/format.h>

#include <algorithm>

#include "router/rollout/spec.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

using config::Node;
using config::Problems;

constexpr size_t kMostCohorts = 100;
constexpr size_t kLongestValue = 256;

/// stable: 3 or {version: 3}
void read_version(const Node& node, std::initializer_list<std::string_view> keys, std::string& version, Problems& problems) {
  if (!node.is_scalar()) {
    problems.allow_only(node, keys);
    if (!node.is_map()) return;
  }
  const auto named = node.is_scalar() ? Result<Node>(node) : node.at("version");
  if (problems.read(version, named ? named->text() : Result<std::string>(named.error())) && version.empty())
    problems.add(named->error("must not be empty"));
}

void read_cohort(const Node& node, Cohort& cohort, Problems& problems) {
  problems.allow_only(node, {"header", "values"});
  if (!node.is_map()) return;
  const auto header = node.at("header"), values = node.at("values");
  if (header)
    read_header(*header, cohort.header, problems);
  else
    problems.add(header.error());
  if (!values) return problems.add(values.error());
  const auto items = values->items();
  if (items.empty() || items.size() > kMostCohorts)
    return problems.add(values->error(fmt::format("must be a list of 1 to {} values", kMostCohorts)));
  for (const Node& item : items) {
    std::string value;
    if (!problems.read(value, item.text())) continue;
    if (value.empty() || value.size() > kLongestValue) problems.add(item.error(fmt::format("must be 1 to {} characters", kLongestValue)));
    cohort.values.push_back(std::move(value));
  }
}

void read_canary(const Node& canary, Spec& spec, Problems& problems) {
  read_version(canary, {"version", "baseline", "sticky", "cohort"}, spec.canary, problems);
  if (!canary.is_map()) return;
  if (const auto baseline = canary.find("baseline"); baseline && problems.read(spec.baseline, baseline->text())) {
    if (spec.baseline.empty() || spec.baseline == "auto")
      problems.add(baseline->error("must name a version of the service that runs stable's model on replicas like the canary's"));
    if (spec.baseline == spec.canary && !spec.canary.empty()) problems.add(baseline->error("is the canary itself"));
  }
  if (const auto sticky = canary.find("sticky")) read_sticky(*sticky, spec.sticky, problems);
  if (const auto cohort = canary.find("cohort")) read_cohort(*cohort, spec.cohort, problems);
}

}  // namespace

void read_sticky(const Node& node, Sticky& sticky, Problems& problems) {
  problems.allow_only(node, {"header", "cookie", "salt", "bothArms"});
  if (node.has("header") == node.has("cookie"))
    problems.add(node.error("must name a header or a cookie: {header: x-user} or {cookie: session}"));
  if (const auto header = node.find("header")) read_header(*header, sticky.header, problems);
  if (const auto cookie = node.find("cookie"); cookie && problems.read(sticky.cookie, cookie->text()) && !is_token(sticky.cookie))
    problems.add(cookie->error("must be the name of a cookie"));
  problems.read(sticky.salt, node.text("salt", ""));
  bool both = true;
  if (problems.read(both, node.boolean("bothArms", true)) && !both)
    problems.add(node.find("bothArms")->error("keys are placed by their hash, which keeps them on stable as well: leave it out"));
}

void read_header(const Node& node, std::string& name, Problems& problems) {
  if (!problems.read(name, node.text())) return;
  if (!is_token(name)) problems.add(node.error("must be the name of a header or cookie"));
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
}

bool is_token(std::string_view name) {
  const auto allowed = [](char c) {
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return alphanumeric || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, allowed);
}

bool is_revision(std::string_view text) {
  return !text.empty() && text.size() <= kLongestRevision && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

void read_traffic(const Node& document, Spec& spec, Problems& problems) {
  const auto service = document.at("service"), canary = document.at("canary");
  if (!service)
    problems.add(service.error());
  else if (problems.read(spec.service, service->text()) && spec.service.empty())
    problems.add(service->error("must not be empty"));
  if (canary)
    read_canary(*canary, spec, problems);
  else
    problems.add(canary.error());
  if (const auto stable = document.find("stable")) {
    read_version(*stable, {"version"}, spec.stable, problems);
    if (spec.baseline == spec.stable) spec.baseline.clear();  // compared with stable itself
  }
  if (const auto revision = document.find("revision");
      revision && problems.read(spec.revision, revision->text()) && !is_revision(spec.revision))
    problems.add(revision->error(fmt::format("must be 1 to {} printable ASCII characters without spaces", kLongestRevision)));
  if (spec.canary == spec.stable && !spec.canary.empty())
    problems.add(canary->error(fmt::format("canary and stable are both version '{}'; they must differ", spec.canary)));
}

}  // namespace serin::rollout
