// proxy.cc: finds the service of a request and starts its exchange; starts the health checks.

#include "router/proxy/proxy.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <random>
#include <vector>

#include "router/proxy/exchange.h"
#include "runtime/base/version.h"

namespace serin::router {

struct Proxy::State {
  net::Loops& loops;
  std::map<std::string, std::unique_ptr<Service>, std::less<>> services;
  std::vector<std::unique_ptr<Lane>> lanes;              // one for each io thread, made and destroyed there
  std::vector<std::unique_ptr<HealthChecker>> checkers;  // on io thread 0

  std::atomic<bool> ending{false};

  bool ready() const {
    if (ending) return false;
    for (const auto& [name, service] : services) {
      const Split split = service->controller->split(service->index);
      if (service->versions[split.stable]->healthy() == 0) return false;
    }
    return true;
  }
};

Proxy::Proxy(const RouterConfig& config, Controller& controller, net::Loops& loops, metrics::Registry& metrics)
    : state_(new State{.loops = loops}) {
  for (size_t index = 0; index < config.services.size(); ++index) {
    const ServiceConfig& configured = config.services[index];
    auto service = std::make_unique<Service>();
    service->index = index;
    service->config = &configured;
    service->controller = &controller;
    service->metrics = &metrics;
    uint32_t first = 0;
    for (const VersionConfig& version : configured.versions) {
      service->versions.push_back(std::make_unique<Endpoints>(configured.name, version, first, metrics));
      first += static_cast<uint32_t>(version.endpoints.size());
      service->latency.push_back(metrics.histogram("serin_route_latency_seconds", "Time of one attempt on a version.",
                                                   {{"service", configured.name}, {"version", version.name}}));
    }
    const metrics::Labels labels = {{"service", configured.name}};
    service->retries =
        metrics.counter("serin_route_retries_total", "Canary attempts that failed or were refused and were run again on stable.", labels);
    service->retries_denied = metrics.counter("serin_route_retries_denied_total",
                                              "Canary attempts that were not run again because the shield's budget was spent.", labels);
    service->mirrors_dropped =
        metrics.counter("serin_route_mirrors_dropped_total", "Sampled requests not mirrored because too many were under way.", labels);
    state_->services.emplace(configured.name, std::move(service));
  }
  std::random_device entropy;
  state_->lanes.resize(loops.size());
  for (size_t i = 0; i < loops.size(); ++i) {
    loops.post_and_wait(i, [&] {
      state_->lanes[i] = std::make_unique<Lane>();
      state_->lanes[i]->random_state = uint64_t{entropy()} << 32 | entropy();
    });
  }
  loops.post_and_wait(0, [&] {
    for (const auto& [name, service] : state_->services) {
      const size_t index = service->index;
      state_->checkers.push_back(std::make_unique<HealthChecker>(
          name, service->versions,
          [&controller, index](size_t version, size_t healthy) { controller.set_healthy_endpoints(index, version, healthy); }));
      state_->checkers.back()->start();
    }
  });
}

Proxy::~Proxy() {
  state_->loops.post_and_wait(0, [this] { state_->checkers.clear(); });
  for (size_t i = 0; i < state_->lanes.size(); ++i) state_->loops.post_and_wait(i, [this, i] { state_->lanes[i].reset(); });
}

void Proxy::stop_being_ready() { state_->ending = true; }

void Proxy::handle(net::Request request, net::Responder responder) {
  if (auto target = parse_target(request)) {
    const auto service = state_->services.find(target->service);
    if (service == state_->services.end())
      return responder.send(net::json_error(
          404, fmt::format("Request for unknown model: '{}' is not found: the router has no such service", target->service)));
    const auto exchange = std::make_shared<Exchange>(*service->second, *state_->lanes[net::this_loop()], std::move(request),
                                                     std::move(*target), std::move(responder));
    return exchange->begin();
  }
  const bool get = request.method == "GET" || request.method == "HEAD";
  std::string_view path = request.path;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const bool known = path == "/v2" || path == "/v2/health/live" || path == "/v2/health/ready";
  if (!known) return responder.send(net::json_error(404, "Not Found"));
  net::Response response;
  response.headers.set("Content-Type", "application/json");
  if (!get) {
    response = net::json_error(405, "this path takes GET only");
    response.headers.set("Allow", "GET");
  } else if (path == "/v2") {
    response.body = fmt::format(R"({{"name":"serin-router","version":"{}","extensions":[]}})", kVersion);
  } else if (path == "/v2/health/live") {
    response.body = R"({"live":true})";
  } else {
    const bool ready = state_->ready();
    response.status = ready ? 200 : 503;
    response.body = ready ? R"({"ready":true})" : R"({"ready":false})";
  }
  responder.send(std::move(response));
}

}  // namespace serin::router
