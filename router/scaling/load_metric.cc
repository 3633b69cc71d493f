#include "router/scaling/load_metric.h"

#include <algorithm>
#include <array>

namespace serin::router {
namespace {

constexpr double kSeconds = 10;  // of VersionLoad::unserved

constexpr std::array<LoadMetric, 2> kMetrics = {
    {{"serin_route_in_flight_requests", [](const VersionLoad& load) { return static_cast<double>(load.in_flight); },
      [](const VersionLoad& load) { return static_cast<double>(load.unserved); }},
     {"serin_route_requests_per_second", [](const VersionLoad& load) { return load.requests_per_second; },
      [](const VersionLoad& load) { return static_cast<double>(load.unserved) / kSeconds; }}}};

}  // namespace

std::span<const LoadMetric> load_metrics() { return kMetrics; }

const LoadMetric* find_load_metric(std::string_view name) {
  const auto* const found = std::ranges::find(kMetrics, name, &LoadMetric::name);
  return found == kMetrics.end() ? nullptr : found;
}

}  // namespace serin::router
