#include "router/config/read_rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "router/rollout/spec_parts.h"

namespace serin::router {

Result<rollout::Spec> read_rollout(const config::Node& document, const RouterConfig& config) {
  SERIN_TRY(rollout::Spec spec, rollout::parse_spec(document));
  const auto service = std::ranges::find(config.services, spec.service, &ServiceConfig::name);
  if (service == config.services.end()) return Error{Code::kNotFound, fmt::format("no service '{}'", spec.service)};
  spec.guard = service->guard;
  if (const auto guard = document.find("guard")) {
    SERIN_TRY(spec.guard, rollout::parse_guard(*guard, service->guard));
  }
  return spec;
}

namespace {

/// Numbers as people write them: Boost writes 2.5 as 2.5E0, which is no weight, and another name of a version.
std::string in_plain_numbers(const boost::json::value& value) {
  if (value.is_double()) return fmt::format("{}", value.as_double());
  if (!value.is_object() && !value.is_array()) return boost::json::serialize(value);
  std::string text;
  if (value.is_array()) {
    for (const boost::json::value& item : value.as_array()) text += (text.empty() ? "" : ",") + in_plain_numbers(item);
    return "[" + text + "]";
  }
  for (const auto& [key, item] : value.as_object())
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", boost::json::serialize(boost::json::value(key)), in_plain_numbers(item));
  return "{" + text + "}";
}

}  // namespace

Result<rollout::Spec> read_rollout(const boost::json::object& spec, const RouterConfig& config) {
  SERIN_TRY(const config::Node document, config::Node::parse(in_plain_numbers(spec), "spec"));
  return read_rollout(document, config);
}

}  // namespace serin::router
