// health_checker.cc: one probe for each endpoint, asked again an interval after its last answer.

#include "router/proxy/health_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/net/grpc.h"

namespace serin::router {
namespace {

/// Where the protocol of an endpoint with this path tells whether it is ready. TensorFlow Serving does at the model's own path.
std::string usual_path(const std::string& path) {
  if (path.empty()) return "/v2/health/ready";
  return path.starts_with("/v1/models/") ? path : path + "/ready";
}

net::Outgoing question(const Health& health, const Endpoint& endpoint) {
  return {.target = health.path.empty() ? usual_path(endpoint.path) : health.path};
}

/// A call with an empty message: grpc.health.v1, or a method like ServerReady, whose answer says yes in field 1 as well.
net::Outgoing call(const Health& health) {
  static const auto empty_message = std::make_shared<const std::string>(net::GrpcPrefix::kBytes, '\0');
  net::Outgoing request{
      .method = "POST", .target = health.path.empty() ? "/grpc.health.v1.Health/Check" : health.path, .body = empty_message};
  request.headers.add("content-type", "application/grpc");
  return request;
}

/// A server without a health service is well as long as it says so.
bool says_yes(const net::Response& answer) {
  auto status = net::grpc_status_in(answer.trailers);
  if (!status) status = net::grpc_status_in(answer.headers);
  if (status == net::GrpcStatus::kUnimplemented) return true;
  return status == net::GrpcStatus::kOk && answer.body.size() >= 7 && std::string_view(answer.body).substr(5, 2) == "\x08\x01";
}

}  // namespace

HealthChecker::HealthChecker(net::Loop& loop, std::string service, std::vector<std::shared_ptr<Endpoints>>& versions,
                             std::function<void(size_t)> changed)
    : loop_(loop), service_(std::move(service)), versions_(versions), changed_(std::move(changed)) {}

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
      probes_.push_back(std::make_unique<Probe>(loop_, endpoint->client_options(/*grpc=*/!endpoint->config.http)));
      probes_.back()->version = version;
      probes_.back()->endpoint = endpoint;
      fresh.push_back(probes_.back().get());
    }
  }
  for (Probe* probe : fresh) ask(*probe);
}

void HealthChecker::send(Probe& probe, std::function<void(const Result<net::Response>&)> done) {
  const Health& health = versions_[probe.version]->config().health;
  const Endpoint& endpoint = probe.endpoint->config;
  probe.client.send(endpoint.origin, endpoint.http ? question(health, endpoint) : call(health), health.timeout, std::move(done));
}

void HealthChecker::ask(Probe& probe) {
  send(probe, [this, &probe](const Result<net::Response>& answer) {
    learn(probe, answer);
    probe.timer = loop_.after(versions_[probe.version]->config().health.interval, [this, &probe] { ask(probe); });
  });
}

/// Any answer is one: a process that is not ready lives, too.
void HealthChecker::ask_for_life(const std::shared_ptr<EndpointState>& endpoint, std::function<void(bool alive)> told) {
  const auto known = std::ranges::find(probes_, endpoint, [](const auto& probe) { return probe->endpoint; });
  if (known == probes_.end()) return;
  Probe& probe = **known;
  if (probe.questioned) {
    probe.again = std::move(told);
    return;
  }
  question_life(probe, std::move(told));
}

void HealthChecker::question_life(Probe& probe, std::function<void(bool alive)> told) {
  probe.questioned = true;
  send(probe, [this, &probe, told = std::move(told)](const Result<net::Response>& answer) {
    probe.questioned = false;
    if (answer || answer.error().code == Code::kUnavailable) told(answer.has_value());
    if (auto again = std::exchange(probe.again, nullptr)) question_life(probe, std::move(again));
  });
}

void HealthChecker::learn(Probe& probe, const Result<net::Response>& answer) {
  Endpoints& version = *versions_[probe.version];
  const Health& health = version.config().health;
  const bool well = answer && (probe.endpoint->config.http ? answer->status == 200 : says_yes(*answer));
  const bool good = well || (answer && health.any_status);
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
    const std::string_view grpc = answer ? answer->trailers.get("grpc-status") : std::string_view();
    const std::string why =
        answer ? fmt::format("status {}{}{}", answer->status, grpc.empty() ? "" : ", grpc-status ", grpc) : answer.error().message;
    log::warning("service '{}' version '{}': endpoint {} is {}", service_, version.version(), endpoint.config.url,
                 now ? "healthy" : "not healthy: " + why);
  }
  if (first || now != was) changed_(probe.version);
}

}  // namespace serin::router
