// proxy.cc: puts services, lanes and health checks together.

#include "router/proxy/proxy.h"

#include <algorithm>
#include <random>
#include <vector>

#include "router/control/learned.h"
#include "router/proxy/endpoint_watch.h"
#include "router/proxy/exchange.h"
#include "router/proxy/health_checker.h"
#include "router/proxy/replayer.h"
#include "router/proxy/resource_watch.h"

namespace serin::router {
namespace {

std::unique_ptr<Service> make_service(const ServiceConfig& config, size_t index, Controller& controller, metrics::Registry& metrics) {
  auto service = std::make_unique<Service>();
  service->index = index;
  service->config = &config;
  service->controller = &controller;
  service->shared = controller.shared_store() != nullptr;
  service->metrics = &metrics;
  for (const VersionConfig& version : config.versions) {
    service->versions.push_back(std::make_shared<Endpoints>(config.name, version, service->next_endpoint, metrics));
    service->latency.push_back(metrics.histogram("serin_route_latency_seconds", "Time of one attempt on a version.",
                                                 {{"service", config.name}, {"version", version.name}}));
  }
  const auto counter = [&](const char* name, const char* help) { return metrics.counter(name, help, {{"service", config.name}}); };
  service->retries = counter("serin_route_retries_total", "Requests that were tried a second time: shield, failover and hedge.");
  service->retries_denied = counter("serin_route_retries_denied_total", "Requests not tried a second time because the budget was spent.");
  service->hedges = counter("serin_route_hedges_total", "Requests for which stable was asked because the canary was slow.");
  service->capped = counter("serin_route_exposure_capped_total", "Requests drawn while the canary had as many under way as it may have.");
  service->mirrors_dropped = counter("serin_route_mirrors_dropped_total", "Sampled requests not mirrored because too many were under way.");
  return service;
}

/// The load of each version, as gauges. They hold the endpoints, because a page may be read while the service goes.
void export_load(const Service& service, metrics::Registry& metrics, std::vector<std::shared_ptr<void>>& handles) {
  for (const auto& endpoints : service.versions) {
    const metrics::Labels labels = {{"service", service.config->name}, {"version", endpoints->version()}};
    handles.push_back(metrics.gauge_callback("serin_route_in_flight_requests", "Requests that a version's endpoints have not answered yet.",
                                             labels, [endpoints] { return static_cast<double>(endpoints->in_flight()); }));
    handles.push_back(metrics.gauge_callback("serin_route_requests_per_second",
                                             "Requests sent to a version's endpoints, mean of the last ten seconds.", labels,
                                             [endpoints] { return endpoints->requests_per_second(std::chrono::steady_clock::now()); }));
  }
}

/// What a further rollout of the service needs of its own; the rest it shares.
std::unique_ptr<Service> make_track(const Service& first, const ServiceConfig& config, size_t index) {
  auto track = std::make_unique<Service>();
  track->index = index;
  track->config = &config;
  track->controller = first.controller;
  track->shared = first.shared;
  track->versions = first.versions;
  track->recorder = first.recorder;
  track->metrics = first.metrics;
  track->mirrors_dropped = first.mirrors_dropped;
  return track;
}

}  // namespace

struct Proxy::State {
  net::Loops& loops;
  kubernetes::SliceWatch* slices;
  Router router;
  std::vector<std::unique_ptr<Workplace>> places;  // one for each io thread, made and destroyed there
  std::vector<std::shared_ptr<void>> of_loads;     // gauges
  // On io thread 0.
  std::vector<std::shared_ptr<HealthChecker>> checkers;
  std::vector<std::unique_ptr<EndpointWatch>> watches;
  std::vector<std::unique_ptr<Replayer>> replayers;
  std::vector<std::unique_ptr<ResourceWatch>> resources;

  /// Health of a service's endpoints, and who they are.
  void watch(const std::string& name, Service& service);
  void watch_rollout(Service& track, const std::shared_ptr<HealthChecker>& checker);
};

/// What is asked of the endpoints for one rollout.
void Proxy::State::watch_rollout(Service& track, const std::shared_ptr<HealthChecker>& checker) {
  resources.push_back(std::make_unique<ResourceWatch>(loops.loop(0), track));
  if (track.recorder) replayers.push_back(std::make_unique<Replayer>(track, places[0]->lane));
  // A checker ends on its thread, where the question may come too late for it.
  track.ask_for_life = [this, &track, weak = std::weak_ptr(checker)](const auto& endpoint, const rollout::Observation& sign) {
    loops.post(0, [&track, weak, endpoint, sign, asked = std::chrono::steady_clock::now()] {
      const auto alive_checker = weak.lock();
      if (!alive_checker) return;
      alive_checker->ask_for_life(endpoint, [&track, sign, asked](bool alive) {
        rollout::Observation told = sign;
        told.ending = alive ? rollout::Ending::kAnswered : rollout::Ending::kRefused;
        told.latency = std::chrono::steady_clock::now() - asked;
        track.controller->observe(track.index, told);
      });
    });
  };
}

void Proxy::State::watch(const std::string& name, Service& service) {
  const auto report = [&service](size_t version) {
    const Endpoints& endpoints = *service.versions[version];
    const EndpointCount count{.all = endpoints.list()->size(), .healthy = endpoints.healthy()};
    service.controller->set_endpoint_count(service.index, version, count);
    for (const auto& track : service.tracks) track->controller->set_endpoint_count(track->index, version, count);
  };
  checkers.push_back(std::make_shared<HealthChecker>(loops.loop(0), name, service.versions, report));
  HealthChecker& checker = *checkers.back();
  checker.follow_lists();
  watch_rollout(service, checkers.back());
  for (const auto& track : service.tracks) watch_rollout(*track, checkers.back());
  for (size_t version = 0; version < service.versions.size(); ++version) {
    if (!service.versions[version]->config().source.changes()) continue;
    const auto asked = [this, &checker, report, version](bool replaced) {
      if (replaced) checker.follow_lists();
      report(version);
      for (size_t i = 0; i < places.size(); ++i) loops.post(i, [place = places[i].get()] { place->lane.forget_gone(); });
    };
    watches.push_back(std::make_unique<EndpointWatch>(loops.loop(0), name, *service.versions[version], asked, slices));
  }
}

Proxy::Proxy(const RouterConfig& config, Controller& controller, net::Loops& loops, Recorders& recorders, AllPredictions& predictions,
             metrics::Registry& metrics, kubernetes::SliceWatch* slices)
    : state_(new State{.loops = loops, .slices = slices}) {
  state_->router.silence = config.limits.silence_timeout;
  std::vector<std::string> recording;
  std::vector<std::shared_ptr<Predictions>> awaiting;
  for (size_t index = 0; index < config.services.size(); ++index) {
    const ServiceConfig& service = config.services[index];
    if (!service.track_of.empty()) {
      Service& first = *state_->router.services.find(service.track_of)->second;
      first.tracks.push_back(make_track(first, service, index));
      continue;
    }
    auto& made = state_->router.services.emplace(service.name, make_service(service, index, controller, metrics)).first->second;
    export_load(*made, metrics, state_->of_loads);
    for (const MetricConfig& metric : service.outcomes)
      if (metric.labels) made->predictions.push_back(predictions.get(service.name, metric.name, *metric.labels, metrics));
    awaiting.insert(awaiting.end(), made->predictions.begin(), made->predictions.end());
    if (!service.recording) continue;
    made->recorder = recorders.get(service.name, *service.recording, metrics);
    recording.push_back(service.name);
  }
  recorders.keep_only(recording);
  predictions.keep_only(awaiting);
  std::random_device entropy;
  state_->places.resize(loops.size());
  for (size_t i = 0; i < loops.size(); ++i)
    loops.post_and_wait(i, [&] { state_->places[i] = std::make_unique<Workplace>(loops.loop(i), uint64_t{entropy()} << 32 | entropy()); });
  loops.post_and_wait(0, [&] {
    for (const auto& [name, service] : state_->router.services) state_->watch(name, *service);
  });
}

Proxy::~Proxy() {
  state_->loops.post_and_wait(0, [this] {
    state_->replayers.clear();
    state_->watches.clear();
    state_->resources.clear();
    state_->checkers.clear();
  });
  for (size_t i = 0; i < state_->places.size(); ++i) state_->loops.post_and_wait(i, [this, i] { state_->places[i].reset(); });
}

net::HandlerFactory Proxy::handlers() {
  return [state = state_.get()](net::ServerStream& client) {
    return std::make_shared<Exchange>(state->router, *state->places[client.loop().index()], client);
  };
}

bool Proxy::is_settled() const {
  return std::ranges::all_of(state_->router.services, [](const auto& named) {
    const Service& service = *named.second;
    for (size_t version = 0; version < service.versions.size(); ++version)
      if (!service.controller->endpoint_count(service.index, version)) return false;
    return true;
  });
}

void Proxy::hand_endpoints_to(RouterConfig& next) const {
  for (ServiceConfig& service : next.services) {
    const auto known = state_->router.services.find(service.name);
    if (known == state_->router.services.end()) continue;
    for (VersionConfig& version : service.versions) {
      if (!version.source.is_remote() || !same_version(*known->second->config, service, version.name)) continue;
      const Endpoints& before = *known->second->versions[version_index(*known->second->config, version.name)];
      version.endpoints.clear();
      for (const auto& endpoint : *before.list()) version.endpoints.push_back(endpoint->config);
    }
  }
}

void Proxy::stop_being_ready() { state_->router.ending = true; }

LoadSource Proxy::load_source() const {
  std::vector<std::pair<std::string, std::shared_ptr<const Endpoints>>> all;
  for (const auto& [name, service] : state_->router.services)
    for (const auto& endpoints : service->versions) all.emplace_back(name, endpoints);
  return [all = std::move(all)] {
    const auto now = std::chrono::steady_clock::now();
    std::vector<VersionLoad> loads;
    loads.reserve(all.size());
    for (const auto& [name, endpoints] : all)
      loads.push_back({.service = name,
                       .version = endpoints->version(),
                       .in_flight = endpoints->in_flight(),
                       .requests_per_second = endpoints->requests_per_second(now),
                       .unserved = endpoints->unserved(now)});
    return loads;
  };
}

}  // namespace serin::router
