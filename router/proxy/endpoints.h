// endpoints.h: where one version of a service lives, which of its endpoints may be sent requests, and who is least busy.
//
// Three things keep an endpoint from being chosen: its health check (health_checker.h), ejection after failures in a row, and its limit of
// requests in flight. The counters are atomics because every io thread chooses from the same endpoints.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "router/config/config.h"
#include "runtime/base/metrics.h"
#include "runtime/base/published.h"

namespace serin::router {

using Time = std::chrono::steady_clock::time_point;

struct EndpointState : std::enable_shared_from_this<EndpointState> {
  EndpointState(const Endpoint& configured, std::shared_ptr<const net::TlsContext> its_tls, uint32_t number, Time now)
      : config(configured), tls(std::move(its_tls)), index(number), since(now) {}
  const Endpoint config;
  const std::shared_ptr<const net::TlsContext> tls;  ///< of its version
  net::ClientOptions client_options(bool grpc) const { return {.http2 = grpc, .tls = tls, .server_name = config.server_name}; }
  bool speaks(bool grpc) const { return grpc ? config.grpc.has_value() : config.http; }
  const uint32_t index;             ///< within the service: the unit of evidence where an answer names no batch
  std::atomic<bool> healthy{true};  ///< as the last check said; before it, whether there was nobody else
  std::atomic<int64_t> in_flight{0};
  std::atomic<int> failures_in_row{0};
  std::atomic<int> ejections{0};  ///< in a row: each lasts longer
  std::atomic<Time> ejected_until{Time()};
  std::atomic<Time> since;  ///< when it became healthy: it begins slowly
  std::shared_ptr<metrics::Gauge> up;
};

/// One version's endpoints. The list is replaced when DNS or a file says so; who is in both lists stays who it is.
class Endpoints {
 public:
  using List = std::vector<std::shared_ptr<EndpointState>>;

  /// `next_index` numbers endpoints within the service.
  Endpoints(const std::string& service, const VersionConfig& config, std::atomic<uint32_t>& next_index, metrics::Registry& metrics);

  const VersionConfig& config() const { return config_; }
  const std::string& version() const { return config_.name; }
  std::shared_ptr<const List> list() const { return list_.get(); }
  const Published<List>& published() const { return list_; }
  /// On one thread only. A new one gets requests once it has passed a check, or at once where there is nobody else.
  void replace(const std::vector<Endpoint>& endpoints);

  /// How many pass their health check.
  size_t healthy() const { return healthy_.load(std::memory_order_relaxed); }
  /// After `healthy` of an endpoint has changed.
  void count_healthy();
  int64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  /// The one with the fewest requests in flight among those that may be chosen, ties broken by `random`; one that is new counts as busier for
  /// a while (slow start). Where none is healthy any one, because a wrong health check must not turn into an outage. `avoid` is left out where there
  /// is another. `grpc`: only those that speak it; otherwise, only those that speak HTTP/1.1. Null: every one is at its limit, or there is none.
  EndpointState* choose(const List& list, uint64_t random, Time now, const EndpointState* avoid = nullptr, bool grpc = false) const;

  void begin(EndpointState& endpoint);
  void end(EndpointState& endpoint);
  /// What came of a request: `failed` where the endpoint is to blame (5xx, no answer, no HTTP).
  void learn(EndpointState& endpoint, bool failed, Time now);

 private:
  const std::string service_;
  const VersionConfig config_;
  std::atomic<uint32_t>& next_index_;
  metrics::Registry& metrics_;
  std::shared_ptr<metrics::Counter> ejected_;
  Published<List> list_;
  std::atomic<size_t> healthy_{0};
  std::atomic<int64_t> in_flight_{0};
};

}  // namespace serin::router
