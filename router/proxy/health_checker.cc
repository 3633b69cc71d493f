// health_checker.cc: one probe for each endpoint, asked again an interval after its last answer.

#include "router/proxy/health_checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"

namespace serin::router {

namespace {

/// Where the protocol of an endpoint with this path tells whether it is ready. TensorFlow Serving does at the model's own path.
std::string usual_path(const std::string& path) {
  if (path.empty()) return "/v2/health/ready";
  return path.starts_with("/v1/models/") ? path : path + "/ready";
}

}  // namespace

HealthChecker::HealthChecker(std::string service, std::vector<std::unique_ptr<Endpoints>>& versions, std::function<void(size_t)> changed)
    : service_(std::move(service)), versions_(versions), changed_(std::move(changed)) {}

void HealthChecker::follow_lists() {
  std::vector<std::unique_ptr<Probe>> before = std::exchange(probes_, {});
  std::vector<Probe*> fresh;
  for (size_t version = 0; version < versions_.size(); ++version) {
    for (const auto& endpoint : *versions_[version]->list()) {
      const auto known = std::ranges::find_if(before, [&](const auto& probe) { return probe && probe->endpoint == endpoint; });
      if (known != before.end()) {
        probes_.push_back(std::move(*known));
        continue;
      }
      probes_.push_back(std::make_unique<Probe>());
      probes_.back()->version = version;
      probes_.back()->endpoint = endpoint;
      fresh.push_back(probes_.back().get());
    }
  }
  for (Probe* probe : fresh) ask(*probe);
}

void HealthChecker::ask(Probe& probe) {
  const Health& health = versions_[probe.version]->config().health;
  const Endpoint& endpoint = probe.endpoint->config;
  net::Outgoing request;
  request.target = health.path.empty() ? usual_path(endpoint.path) : health.path;
  probe.client.send(endpoint.origin, std::move(request), health.timeout, [this, &probe](const Result<net::Response>& answer) {
    learn(probe, answer);
    probe.timer = net::after(versions_[probe.version]->config().health.interval, [this, &probe] { ask(probe); });
  });
}

void HealthChecker::learn(Probe& probe, const Result<net::Response>& answer) {
  Endpoints& version = *versions_[probe.version];
  const Health& health = version.config().health;
  const bool good = answer && (answer->status == 200 || health.any_status);
  const bool first = probe.failures + probe.successes == 0;
  probe.failures = good ? 0 : probe.failures + 1;
  probe.successes = good ? probe.successes + 1 : 0;

  EndpointState& endpoint = *probe.endpoint;
  const bool was = endpoint.healthy;
  // The first check decides alone: an endpoint that was never seen well is not sent requests for two intervals to find out.
  const bool down = !good && (first || probe.failures >= health.unhealthy);
  const bool up = good && (first || probe.successes >= health.healthy);
  const bool now = was ? !down : up;
  if (now != was || (first && !now)) {
    endpoint.healthy = now;
    if (now) endpoint.since = std::chrono::steady_clock::now();
    endpoint.up->set(now ? 1 : 0);
    version.count_healthy();
    const std::string why = answer ? fmt::format("status {}", answer->status) : answer.error().message;
    log::warning("service '{}' version '{}': endpoint {} is {}", service_, version.version(), endpoint.config.url,
                 now ? "healthy" : "not healthy: " + why);
  }
  if (first || now != was) changed_(probe.version);
}

}  // namespace serin::router
