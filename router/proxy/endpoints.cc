// endpoints.cc: least loaded choice, ejection and slow start.
//
// Ejection (as Envoy's outlier detection, per endpoint): so many failures in a row and it is left out, for longer each time, but never more than
// half of a version's endpoints: a version that fails as a whole is the judge's business, and one endpoint is never left out of one.

#include "router/proxy/endpoints.h"

#include <algorithm>

#include "runtime/base/log.h"

namespace serin::router {
namespace {

constexpr double kSlowest = 0.1;  // of its share, for an endpoint that has just become healthy

/// Its part of what others get, from kSlowest to 1.
double ramp(const EndpointState& endpoint, std::chrono::milliseconds slow_start, Time now) {
  if (slow_start.count() == 0) return 1;
  const auto age = std::chrono::duration<double>(now - endpoint.since.load(std::memory_order_relaxed));
  return std::clamp(age / slow_start, kSlowest, 1.);
}

}  // namespace

Endpoints::Endpoints(const std::string& service, const VersionConfig& config, std::atomic<uint32_t>& next_index, metrics::Registry& metrics)
    : service_(service),
      config_(config),
      next_index_(next_index),
      metrics_(metrics),
      ejected_(metrics.counter("serin_route_ejections_total", "Endpoints left out for a while because of failures in a row.",
                               {{"service", service}, {"version", config.name}})) {
  replace(config.endpoints);
}

void Endpoints::replace(const std::vector<Endpoint>& endpoints) {
  const auto before = list_.get();
  const auto now = std::chrono::steady_clock::now();
  const auto stays = [&](const auto& state) {
    return state->healthy && std::ranges::find(endpoints, state->config.url, &Endpoint::url) != endpoints.end();
  };
  const bool nobody_else = std::ranges::none_of(*before, stays);
  auto list = std::make_shared<List>();
  for (const Endpoint& endpoint : endpoints) {
    const auto known = std::ranges::find(*before, endpoint.url, [](const auto& state) -> const std::string& { return state->config.url; });
    if (known != before->end()) {
      list->push_back(*known);
      continue;
    }
    // At full speed, too, where there is nobody else to send requests to.
    list->push_back(std::make_shared<EndpointState>(endpoint, config_.tls, next_index_++, nobody_else ? Time() : now));
    list->back()->healthy = nobody_else;
    list->back()->up = metrics_.gauge("serin_route_endpoint_up", "1 where the endpoint passes its health check.",
                                      {{"service", service_}, {"version", config_.name}, {"endpoint", endpoint.url}});
    list->back()->up->set(nobody_else ? 1 : 0);
  }
  list_.publish(std::move(list));
  count_healthy();
}

void Endpoints::count_healthy() {
  const auto list = list_.get();
  healthy_ = static_cast<size_t>(std::ranges::count_if(*list, [](const auto& endpoint) { return endpoint->healthy.load(); }));
}

EndpointState* Endpoints::choose(const List& list, uint64_t random, Time now, const EndpointState* avoid, bool grpc) const {
  const size_t count = list.size();
  if (count == 1) {  // the usual case
    EndpointState& only = *list.front();
    return only.in_flight.load(std::memory_order_relaxed) < config_.max_in_flight && only.speaks(grpc) ? &only : nullptr;
  }
  constexpr double kReluctantly = 1e9, kHardly = 1e12;  // without health, or ejected; the one to avoid
  EndpointState* best = nullptr;
  double least = 0;
  for (size_t i = 0, at = count == 0 ? 0 : random % count; i < count; ++i, at = at + 1 == count ? 0 : at + 1) {
    EndpointState& endpoint = *list[at];
    const int64_t in_flight = endpoint.in_flight.load(std::memory_order_relaxed);
    if (in_flight >= config_.max_in_flight || !endpoint.speaks(grpc)) continue;
    const int copies = endpoint.copying.load(std::memory_order_relaxed) ? 1 : 0;
    double cost = static_cast<double>(in_flight + copies + 1) / ramp(endpoint, config_.slow_start, now);
    if (!endpoint.healthy.load(std::memory_order_relaxed) || endpoint.ejected_until.load(std::memory_order_relaxed) > now)
      cost += kReluctantly;
    if (&endpoint == avoid) cost += kHardly;
    if (best && cost >= least) continue;
    best = &endpoint;
    least = cost;
  }
  return best;
}

void Endpoints::begin(EndpointState& endpoint) {
  endpoint.requests.fetch_add(1, std::memory_order_relaxed);
  endpoint.in_flight.fetch_add(1, std::memory_order_relaxed);
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  recent_.count(std::chrono::steady_clock::now());
}

void Endpoints::end(EndpointState& endpoint) {
  const bool idle = endpoint.in_flight.fetch_sub(1, std::memory_order_relaxed) == 1;
  Time since = endpoint.copied_since.load(std::memory_order_relaxed);
  if (idle && since != Time() && !endpoint.copying)
    endpoint.copied_since.compare_exchange_strong(since, Time());  // unless another has begun
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
}

void Endpoints::learn(EndpointState& endpoint, bool failed, Time now) {
  if (!failed) {
    if (endpoint.failures_in_row.load(std::memory_order_relaxed) != 0) endpoint.failures_in_row = 0;
    if (endpoint.ejections.load(std::memory_order_relaxed) != 0 && endpoint.ejected_until.load() <= now) endpoint.ejections = 0;
    return;
  }
  const Ejection& ejection = config_.ejection;
  if (ejection.failures == 0 || ++endpoint.failures_in_row < ejection.failures || endpoint.ejected_until.load() > now) return;
  const auto list = list_.get();
  const auto out = std::ranges::count_if(*list, [now](const auto& each) { return !each->healthy || each->ejected_until.load() > now; });
  if (2 * (static_cast<size_t>(out) + 1) > list->size()) return;
  endpoint.failures_in_row = 0;
  const int times = std::min(++endpoint.ejections, ejection.longest);
  endpoint.ejected_until = now + ejection.time * times;
  endpoint.since = now + ejection.time * times;  // and then begins slowly
  ejected_->add();
  log::warning("service '{}' version '{}': endpoint {} failed {} times in a row and is left out for {} ms", service_, config_.name,
               endpoint.config.url, ejection.failures, (ejection.time * times).count());
}

}  // namespace serin::router
