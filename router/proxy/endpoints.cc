// endpoints.cc: least loaded choice and active health checks.

#include "router/proxy/endpoints.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"

namespace serin::router {

Endpoints::Endpoints(const std::string& service, const VersionConfig& config, uint32_t first_index, metrics::Registry& metrics)
    : version_(config.name), health_(config.health) {
  for (const Endpoint& endpoint : config.endpoints) {
    endpoints_.push_back(std::make_unique<EndpointState>(endpoint, first_index++));
    endpoints_.back()->up = metrics.gauge("serin_route_endpoint_up", "1 where the endpoint passes its health check.",
                                          {{"service", service}, {"version", version_}, {"endpoint", endpoint.url}});
    endpoints_.back()->up->set(1);
  }
}

size_t Endpoints::healthy() const {
  return static_cast<size_t>(
      std::ranges::count_if(endpoints_, [](const auto& endpoint) { return endpoint->healthy.load(std::memory_order_relaxed); }));
}

EndpointState& Endpoints::choose(uint64_t random, const EndpointState* avoid) {
  const size_t start = random % endpoints_.size();
  const auto cost = [&](const EndpointState& endpoint) {
    constexpr int64_t kNever = int64_t{1} << 60, kReluctantly = int64_t{1} << 40;
    return endpoint.in_flight.load(std::memory_order_relaxed) + (endpoint.healthy.load(std::memory_order_relaxed) ? 0 : kReluctantly) +
           (&endpoint == avoid ? kNever : 0);
  };
  EndpointState* best = endpoints_[start].get();
  for (size_t i = 1; i < endpoints_.size(); ++i) {
    EndpointState& candidate = *endpoints_[(start + i) % endpoints_.size()];
    if (cost(candidate) < cost(*best)) best = &candidate;
  }
  return *best;
}

HealthChecker::HealthChecker(std::string service, std::vector<std::unique_ptr<Endpoints>>& versions,
                             std::function<void(size_t, size_t)> changed)
    : service_(std::move(service)), versions_(versions), changed_(std::move(changed)) {
  for (size_t version = 0; version < versions_.size(); ++version) {
    for (const auto& endpoint : versions_[version]->all()) {
      probes_.push_back(std::make_unique<Probe>());
      probes_.back()->version = version;
      probes_.back()->endpoint = endpoint.get();
    }
  }
}

void HealthChecker::start() {
  for (const auto& probe : probes_) ask(*probe);
}

void HealthChecker::ask(Probe& probe) {
  const Health& health = versions_[probe.version]->health();
  const Endpoint& endpoint = probe.endpoint->config;
  net::Outgoing request;
  request.target = !health.path.empty() ? health.path : endpoint.path.empty() ? "/v2/health/ready" : endpoint.path + "/ready";
  probe.call = client_.send(endpoint.origin, std::move(request), health.timeout, [this, &probe](const Result<net::Response>& answer) {
    learn(probe, answer);
    probe.timer = net::after(versions_[probe.version]->health().interval, [this, &probe] { ask(probe); });
  });
}

void HealthChecker::learn(Probe& probe, const Result<net::Response>& answer) {
  const Health& health = versions_[probe.version]->health();
  const bool good = answer && answer->status == 200;
  probe.failures = good ? 0 : probe.failures + 1;
  probe.successes = good ? probe.successes + 1 : 0;

  const bool was = probe.endpoint->healthy;
  // The first check decides alone: an endpoint that was never seen well is not sent requests for two intervals to find out.
  const bool down = !good && (probe.first || probe.failures >= health.unhealthy);
  const bool up = good && (probe.first || probe.successes >= health.healthy);
  const bool now = was ? !down : up;
  if (now != was) {
    probe.endpoint->healthy = now;
    probe.endpoint->up->set(now ? 1 : 0);
    const std::string why = answer ? fmt::format("status {}", answer->status) : answer.error().message;
    log::warning("service '{}' version '{}': endpoint {} is {}{}", service_, versions_[probe.version]->version(),
                 probe.endpoint->config.url, now ? "healthy again" : "not healthy: ", now ? "" : why);
  }
  if (probe.first || now != was) changed_(probe.version, versions_[probe.version]->healthy());
  probe.first = false;
}

}  // namespace serin::router
