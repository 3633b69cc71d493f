// endpoints.h: The endpoints of one version of a service, and the choice of the least busy one.
//
// Three things exclude an endpoint from the choice: its health check (health_checker.h), ejection after failures in a row, and its limit of
// requests in flight. The counters are atomics because every io thread chooses from the same endpoints.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "router/config/config.h"
#include "router/proxy/recent_requests.h"
#include "runtime/base/metrics.h"
#include "runtime/base/published.h"
#include "runtime/net/client_options.h"

namespace serin::router {

using Time = std::chrono::steady_clock::time_point;

struct EndpointState : std::enable_shared_from_this<EndpointState> {
  EndpointState(const Endpoint& configured, std::shared_ptr<const net::TlsContext> its_tls, uint32_t number, Time now)
      : config(configured), tls(std::move(its_tls)), index(number), since(now) {}
  const Endpoint config;
  const std::shared_ptr<const net::TlsContext> tls;  ///< of its version
  net::ClientOptions client_options(bool grpc) const { return {.http2 = grpc, .tls = tls, .server_name = config.server_name}; }
  bool speaks(bool grpc) const { return grpc ? config.grpc.has_value() : config.http; }
  const uint32_t index;             ///< within the service: the unit of evidence if an answer names no batch
  std::atomic<bool> healthy{true};  ///< by the last check; before the first, whether there was no other endpoint
  std::atomic<int64_t> in_flight{0};
  std::atomic<uint64_t> requests{0};  ///< sent to it so far, copies included
  std::atomic<int> failures_in_row{0};
  std::atomic<int> ejections{0};  ///< in a row: each is longer than the one before
  std::atomic<Time> ejected_until{Time()};
  std::atomic<Time> since;  ///< when it became healthy: slow start counts from here
  std::shared_ptr<metrics::Gauge> up;
  // Copies in spare time (spare_time.h).
  std::atomic<bool> copying{false};
  std::atomic<Time> copied_since{Time()};  ///< the copy since which it has been busy; Time(): none
  std::atomic<Time> next_copy{Time()};     ///< not before
};

/// One version's endpoints. DNS or a file may replace the list; an endpoint in both lists keeps its state.
class Endpoints {
 public:
  using List = std::vector<std::shared_ptr<EndpointState>>;

  /// `next_index` numbers endpoints within the service.
  Endpoints(const std::string& service, const VersionConfig& config, std::atomic<uint32_t>& next_index, metrics::Registry& metrics);

  const VersionConfig& config() const { return config_; }
  const std::string& version() const { return config_.name; }
  std::shared_ptr<const List> list() const { return list_.get(); }
  const Published<List>& published() const { return list_; }
  /// On one thread only. A new endpoint gets requests after it has passed a check, or at once if there is no other one.
  void replace(const std::vector<Endpoint>& endpoints);

  /// The number that pass their health check.
  size_t healthy() const { return healthy_.load(std::memory_order_relaxed); }
  /// After `healthy` of an endpoint has changed.
  void count_healthy();
  int64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  double requests_per_second(Time now) const { return recent_.per_second(now); }
  /// A request came for this version while none of its endpoints was healthy. Where replicas went to none, it asks for the first one.
  void count_unserved() { unserved_.count(std::chrono::steady_clock::now()); }
  int64_t unserved(Time now) const { return unserved_.lately(now); }

  /// The endpoint with the fewest requests in flight among those allowed; `random` breaks ties. A new one counts as busier for a while
  /// (slow start). If none is healthy it chooses from all, because a wrong health check must not cause an outage. `avoid` is skipped if
  /// there is another. `grpc`: only gRPC endpoints; otherwise only HTTP/1.1 endpoints. Null: every one is at its limit, or there is none.
  EndpointState* choose(const List& list, uint64_t random, Time now, const EndpointState* avoid = nullptr, bool grpc = false) const;

  void begin(EndpointState& endpoint);
  void end(EndpointState& endpoint);
  /// The result of a request. `failed`: the endpoint is to blame (5xx, no answer, no HTTP).
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
  RecentRequests recent_, unserved_;
};

}  // namespace serin::router
