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

Result<rollout::Spec> read_rollout(const boost::json::object& spec, const RouterConfig& config) {
  SERIN_TRY(const config::Node document, config::Node::parse(boost::json::serialize(spec), "spec"));
  return read_rollout(document, config);
}

}  // namespace serin::router
