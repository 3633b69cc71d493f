// service.h: State that the requests of one service share (versions and counters), and the state of each io thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "router/control/controller.h"
#include "router/outcomes/predictions.h"
#include "router/proxy/endpoints.h"
#include "router/proxy/likeness.h"
#include "router/proxy/rewrite.h"
#include "router/recording/recorder.h"
#include "runtime/base/stable_hash.h"
#include "runtime/net/buffer.h"
#include "runtime/net/grpc.h"
#include "runtime/net/loop.h"
#include "runtime/net/upstream.h"

namespace serin::router {

/// Requests of one service in a second attempt (shield, failover, hedge), and their limit. Shared by the io threads.
class RetryBudget {
 public:
  /// `share` of the requests in progress, plus 3: second attempts must not overload the healthy part of a service.
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

/// The number of requests drawn each second; measured about every 100 ms by the first caller.
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
  /// Also during a burst that has only begun.
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
  bool shared = false;                               ///< by several routers, which do not know each other's requests
  std::vector<std::shared_ptr<Endpoints>> versions;  ///< in the configuration's order: the indices of Split
  /// Further rollouts that may run at once (control/tracks.h): with the same versions, and with what belongs to one rollout.
  std::vector<std::unique_ptr<Service>> tracks;
  std::atomic<uint32_t> next_endpoint{0};
  RetryBudget budget;
  ArrivalRate arrivals;
  std::atomic<int64_t> mirrored{0};
  UsualSpread usual_spread;            ///< of stable's scores
  std::shared_ptr<Recorder> recorder;  ///< null: nothing is recorded
  /// Of its outcomes with `labels`; empty: no answer is read for one.
  std::vector<std::shared_ptr<Predictions>> predictions;
  metrics::Registry* metrics = nullptr;
  std::shared_ptr<metrics::Counter> retries, retries_denied, hedges, mirrors_dropped, capped;
  std::vector<std::shared_ptr<metrics::Histogram>> latency;  ///< by version
  /// Finds out whether the endpoint of a broken answer lives, and tells the judge: `sign` with its ending. From any thread.
  std::function<void(const std::shared_ptr<EndpointState>& endpoint, rollout::Observation sign)> ask_for_life;
};

/// Everything that is routed.
struct Router {
  std::map<std::string, std::unique_ptr<Service>, std::less<>> services;
  std::atomic<bool> ending{false};
  std::chrono::milliseconds silence{0};  ///< net::Limits::silence_timeout

  /// The service of a request; null: none. Paddle's C++ server has one path for any model, so that path means the only service.
  Service* find(const Target& target) const;
  /// Whether every service has an endpoint that can answer.
  bool ready() const;
};

/// State of one io thread.
class Lane {
 public:
  Lane(net::Loop& loop, uint64_t seed) : loop_(loop), random_state_(seed) {}

  net::Loop& loop() { return loop_; }
  /// splitmix64: the statistics require independent draws, and it passes BigCrush.
  uint64_t random() { return mix(std::exchange(random_state_, random_state_ + kGolden)); }
  net::Upstream& upstream(EndpointState& endpoint, bool grpc = false);
  /// Ends the connections to endpoints that are no longer in a list, when no request uses them. Not from inside a call by one of them.
  void forget_gone();
  const Endpoints::List& endpoints(const Endpoints& version);
  /// Of the rollout whose epoch the split names; read from the controller when that changes.
  const std::shared_ptr<const rollout::Spec>& spec(const Service& service, const Split& split);
  void count_answer(const Service& service, size_t version, int status);
  void count_answer(const Service& service, size_t version, net::GrpcStatus status);

  net::BufferPool& buffers() { return buffers_; }  ///< for bodies

 private:
  struct Seen {
    uint64_t word = ~uint64_t{0};
    std::shared_ptr<const rollout::Spec> spec;
  };

  /// The weak pointer also keeps the address, which is the key, from being reused.
  struct Connections {
    std::weak_ptr<const EndpointState> endpoint;
    std::unique_ptr<net::Upstream> http, grpc;  // made on first use
  };

  using Answered = std::tuple<const Service*, size_t, int>;
  void count_answer(const Answered& answered, std::string_view code);

  net::Loop& loop_;
  uint64_t random_state_;
  net::BufferPool buffers_;
  std::unordered_map<const EndpointState*, Connections> upstreams_;
  std::unordered_map<const Endpoints*, Published<Endpoints::List>::Reader> lists_;
  std::unordered_map<const Service*, Seen> specs_;
  std::map<Answered, std::shared_ptr<metrics::Counter>> answers_;  // made on first use
  std::pair<Answered, metrics::Counter*> last_answer_;             // an entry of answers_: the next answer often has the same one
};

}  // namespace serin::router
