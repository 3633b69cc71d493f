// endpoints.h: where the versions of a service live, which of them are well, and who is least busy.
//
// Health is checked on io thread 0 and read everywhere; the counters are atomics because every io thread chooses from the same endpoints.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "router/config.h"
#include "runtime/base/metrics.h"
#include "runtime/net/client.h"
#include "runtime/net/loop.h"

namespace serin::router {

struct EndpointState {
  explicit EndpointState(const Endpoint& configured, uint32_t number) : config(configured), index(number) {}
  const Endpoint config;
  const uint32_t index;             ///< within the service: the unit of evidence where an answer names no batch
  std::atomic<bool> healthy{true};  ///< until a check says otherwise, so that a router serves from its first moment
  std::atomic<int64_t> in_flight{0};
  std::shared_ptr<metrics::Gauge> up;
};

/// One version's endpoints.
class Endpoints {
 public:
  Endpoints(const std::string& service, const VersionConfig& config, uint32_t first_index, metrics::Registry& metrics);

  const std::string& version() const { return version_; }
  const Health& health() const { return health_; }
  std::vector<std::unique_ptr<EndpointState>>& all() { return endpoints_; }
  size_t healthy() const;
  /// The healthy one with the fewest requests in flight, ties broken by `random`; where none is healthy any one, because a wrong health check must
  /// not turn into an outage. `avoid` is left out where there is another.
  EndpointState& choose(uint64_t random, const EndpointState* avoid = nullptr);

 private:
  const std::string version_;
  const Health health_;
  std::vector<std::unique_ptr<EndpointState>> endpoints_;
};

/// Asks every endpoint in turn, for ever. Lives on one io thread.
class HealthChecker {
 public:
  /// `changed(version index, healthy count)` is called on the io thread after the first check of a version and whenever its count changed.
  HealthChecker(std::string service, std::vector<std::unique_ptr<Endpoints>>& versions, std::function<void(size_t, size_t)> changed);
  void start();  ///< on the io thread; the checker must be destroyed there, too

 private:
  struct Probe {
    size_t version = 0;
    EndpointState* endpoint = nullptr;
    int failures = 0, successes = 0;
    bool first = true;
    net::Timer timer;
    net::Call call;
  };
  void ask(Probe& probe);
  void learn(Probe& probe, const Result<net::Response>& answer);

  const std::string service_;
  std::vector<std::unique_ptr<Endpoints>>& versions_;
  std::function<void(size_t, size_t)> changed_;
  net::Client client_{net::ClientOptions{}};
  std::vector<std::unique_ptr<Probe>> probes_;
};

}  // namespace serin::router
