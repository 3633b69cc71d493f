#include "router/scaling/scaler_trigger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/base/number.h"

namespace serin::router {
namespace {

constexpr std::string_view kServiceKey = "service", kVersionKey = "version", kMetricKey = "metric", kThresholdKey = "threshold",
                           kActivationKey = "activationThreshold";
constexpr std::array<std::string_view, 5> kKeys = {kServiceKey, kVersionKey, kMetricKey, kThresholdKey, kActivationKey};
/// KEDA reads these and passes them on.
constexpr std::array<std::string_view, 3> kKeysOfKeda = {"scalerAddress", "enableTLS", "unsafeSsl"};

Result<double> read_number(std::string_view key, const std::string& text) {
  const auto number = parse_number<double>(text);
  if (!number || *number < 0) return invalid(fmt::format("{}: '{}' is not a number of at least 0", key, text));
  return *number;
}

}  // namespace

Result<ScalerTrigger> ScalerTrigger::read(const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata)
    if (std::ranges::find(kKeys, key) == kKeys.end() && std::ranges::find(kKeysOfKeda, key) == kKeysOfKeda.end())
      return invalid(fmt::format("unknown key '{}' in the metadata of the trigger; allowed: {}", key, fmt::join(kKeys, ", ")));
  const auto text = [&metadata](std::string_view key, std::string_view usual = {}) {
    const auto found = metadata.find(std::string(key));
    return found == metadata.end() ? std::string(usual) : found->second;
  };
  ScalerTrigger trigger{.service = text(kServiceKey), .version = text(kVersionKey)};
  if (trigger.service.empty()) return invalid("service: the metadata of the trigger must name a service");
  if (trigger.version.empty()) return invalid("version: the metadata of the trigger must name a version");
  const std::string name = text(kMetricKey, load_metrics().front().name);
  trigger.metric = find_load_metric(name);
  if (trigger.metric == nullptr) {
    std::string known;
    for (const LoadMetric& metric : load_metrics()) known += fmt::format("{}{}", known.empty() ? "" : ", ", metric.name);
    return invalid(fmt::format("metric: there is no '{}'; allowed: {}", name, known));
  }
  SERIN_TRY(trigger.threshold, read_number(kThresholdKey, text(kThresholdKey)));
  if (trigger.threshold == 0) return invalid("threshold: must be above 0");
  SERIN_TRY(trigger.activation, read_number(kActivationKey, text(kActivationKey, "0")));
  return trigger;
}

Result<VersionLoad> ScalerTrigger::find(const std::vector<VersionLoad>& loads) const {
  const bool known = std::ranges::find(loads, service, &VersionLoad::service) != loads.end();
  if (!known) return Error{Code::kNotFound, fmt::format("the router has no service '{}'", service)};
  const auto found =
      std::ranges::find_if(loads, [this](const VersionLoad& load) { return load.service == service && load.version == version; });
  if (found == loads.end()) return Error{Code::kNotFound, fmt::format("service '{}' has no version '{}'", service, version)};
  return *found;
}

bool ScalerTrigger::is_active(const VersionLoad& load) const {
  return load.needed || std::max(metric->value(load), metric->unserved(load)) > activation;
}

}  // namespace serin::router
