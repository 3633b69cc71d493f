// service.h: what the requests of one service share: its versions and its counts; and what each io thread has for itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "router/control/controller.h"
#include "router/proxy/endpoints.h"
#include "router/proxy/rewrite.h"
#include "router/rollout/hash.h"
#include "runtime/net/buffer.h"
#include "runtime/net/grpc.h"
#include "runtime/net/upstream.h"

namespace serin::router {

/// Requests of one service that are tried a second time (shield, failover, hedge) and how many there may be. Shared by the io threads.
class RetryBudget {
 public:
  /// `share` of the requests under way, plus 3: what is left standing of a service must not be trampled by second tries.
  bool take(double share) {
    const auto most = static_cast<int64_t>(share * static_cast<double>(active_.load(std::memory_order_relaxed))) + 3;
    if (retries_.fetch_add(1, std::memory_order_relaxed) < most) return true;
    give_back();
    return false;
  }
  void give_back() { retries_.fetch_sub(1, std::memory_order_relaxed); }
  void request_begins() { active_.fetch_add(1, std::memory_order_relaxed); }
  void request_ends() { active_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> active_{0}, retries_{0};
};

/// How many requests a second are drawn; measured about every 100 ms by whoever comes first.
class ArrivalRate {
 public:
  void count(Time now) {
    arrivals_.fetch_add(1, std::memory_order_relaxed);
    Time since = since_.load(std::memory_order_relaxed);
    const auto age = now - since;
    if (age < std::chrono::milliseconds(100) || !since_.compare_exchange_strong(since, now)) return;
    const double latest = static_cast<double>(arrivals_.exchange(0)) / std::chrono::duration<double>(age).count();
    per_second_ = 0.7 * per_second_.load() + 0.3 * latest;
  }
  /// Also of a burst that has only begun.
  double per_second() const {
    return std::max(per_second_.load(std::memory_order_relaxed), 10. * static_cast<double>(arrivals_.load(std::memory_order_relaxed)));
  }

 private:
  std::atomic<uint64_t> arrivals_{0};
  std::atomic<Time> since_{Time()};
  std::atomic<double> per_second_{0};
};

struct Service {
  size_t index = 0;
  const ServiceConfig* config = nullptr;
  Controller* controller = nullptr;
  std::vector<std::unique_ptr<Endpoints>> versions;  ///< in the configuration's order: the indices of Split
  std::atomic<uint32_t> next_endpoint{0};
  RetryBudget budget;
  ArrivalRate arrivals;
  std::atomic<int64_t> mirrored{0};
  metrics::Registry* metrics = nullptr;
  std::shared_ptr<metrics::Counter> retries, retries_denied, hedges, mirrors_dropped, capped;
  std::vector<std::shared_ptr<metrics::Histogram>> latency;  ///< by version
};

class Attempt;
class Shadow;

/// All that is routed.
struct Router {
  std::map<std::string, std::unique_ptr<Service>, std::less<>> services;
  std::atomic<bool> ending{false};
  std::chrono::milliseconds silence{0};  ///< net::Limits::silence_timeout

  /// Whose request it is; null: nobody's. Paddle's C++ server has one path for whatever it serves, so it is the only service's, too.
  Service* find(const Target& target) const;
  /// Whether every service has somebody to answer.
  bool ready() const;
};

/// What each io thread has for itself.
class Lane {
 public:
  explicit Lane(uint64_t seed);
  ~Lane();

  /// splitmix64: independent draws are what the statistics rest on, and it passes BigCrush.
  uint64_t random() { return rollout::mix(std::exchange(random_state_, random_state_ + rollout::kGolden)); }
  net::Upstream& upstream(EndpointState& endpoint, bool grpc = false);
  /// Ends the connections to endpoints that are in no list any more, once no request is under way. Not out of a call from one of them.
  void forget_gone();
  const Endpoints::List& endpoints(const Endpoints& version);
  /// Of the rollout whose epoch the split names; asked of the controller when that changes.
  const std::shared_ptr<const rollout::Spec>& spec(const Service& service, const Split& split);
  void count_answer(const Service& service, size_t version, int status);
  void count_answer(const Service& service, size_t version, net::GrpcStatus status);

  net::BufferPool& buffers() { return buffers_; }  ///< for bodies
  Attempt& take_attempt();
  void give_back(Attempt& attempt);
  Shadow& take_shadow();
  void give_back(Shadow& shadow);

 private:
  struct Seen {
    uint64_t word = ~uint64_t{0};
    std::shared_ptr<const rollout::Spec> spec;
  };

  /// The weak pointer also keeps the address, which is the key, from being used again.
  struct Connections {
    std::weak_ptr<const EndpointState> endpoint;
    std::unique_ptr<net::Upstream> http, grpc;  // made when first needed
  };

  template <class T>
  T& take(std::vector<std::unique_ptr<T>>& all, std::vector<T*>& free);

  using Answered = std::tuple<const Service*, size_t, int>;
  void count_answer(const Answered& answered, std::string_view code);

  uint64_t random_state_;
  net::BufferPool buffers_;
  std::unordered_map<const EndpointState*, Connections> upstreams_;
  std::unordered_map<const Endpoints*, Published<Endpoints::List>::Reader> lists_;
  std::unordered_map<const Service*, Seen> specs_;
  std::map<Answered, std::shared_ptr<metrics::Counter>> answers_;  // made when first met
  std::pair<Answered, metrics::Counter*> last_answer_;             // of answers_: the next one is often the same
  std::vector<std::unique_ptr<Attempt>> all_attempts_;
  std::vector<Attempt*> free_attempts_;
  std::vector<std::unique_ptr<Shadow>> all_shadows_;
  std::vector<Shadow*> free_shadows_;
};

}  // namespace serin::router
