// exchange.h: the life of one client request in the router, on one io thread.
//
//   drawn -> attempt on an arm -> answer good ----------------------------> client
//                              -> failed or refused on the canary -> shield: attempt on stable -> client
//                              -> endpoint gone without an answer -> failover: the version's next endpoint, once -> client
//            (stable's answer, sampled) -> mirrored to the canary, compared; the client has long been answered
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "router/controller.h"
#include "router/proxy/endpoints.h"
#include "router/proxy/rewrite.h"
#include "runtime/net/server.h"

namespace serin::router {

/// One service as the data path knows it; shared by the io threads.
struct Service {
  size_t index = 0;
  const ServiceConfig* config = nullptr;
  Controller* controller = nullptr;
  std::vector<std::unique_ptr<Endpoints>> versions;  ///< in the configuration's order: the indices of Split
  std::atomic<int64_t> active{0}, shielded{0}, mirrored{0};
  metrics::Registry* metrics = nullptr;
  std::shared_ptr<metrics::Counter> retries, retries_denied, mirrors_dropped;
  std::vector<std::shared_ptr<metrics::Histogram>> latency;  ///< by version
};

/// What each io thread has for itself.
struct Lane {
  net::Client client{net::ClientOptions{}};
  uint64_t random_state = 0;
  /// splitmix64: independent draws are what the statistics rest on, and it passes BigCrush.
  uint64_t random();
  /// Counters by (version, status), made when first met.
  std::map<std::tuple<const Service*, size_t, int>, std::shared_ptr<metrics::Counter>> answers;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Service& service, Lane& lane, net::Request request, Target target, net::Responder responder);
  ~Exchange();
  void begin();

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class Purpose : uint8_t { kDrawn, kFallback, kForced, kShield, kFailover };

  void attempt(size_t version, Purpose purpose, const EndpointState* avoid = nullptr);
  void answered(size_t version, Purpose purpose, Time started, Result<net::Response> answer);
  void in_flight_deadline();
  void observe(size_t version, rollout::Outcome outcome, std::chrono::nanoseconds latency, const Result<net::Response>* answer);
  bool shield_allows(rollout::Outcome outcome) const;
  bool failover_helps(size_t version, Purpose purpose, const Result<net::Response>& answer) const;
  void mirror(Result<net::Response> stable_answer, uint32_t stable_endpoint);
  void finish(size_t version, Result<net::Response> answer);
  void refuse(int status, const std::string& message);
  std::chrono::nanoseconds time_left() const;

  Service& service_;
  Lane& lane_;
  net::Request request_;
  Target target_;
  std::shared_ptr<const std::string> body_;
  net::Responder responder_;
  const Time arrived_ = std::chrono::steady_clock::now();
  Time deadline_;
  Split split_;
  std::shared_ptr<const rollout::Spec> spec_;  // of the rollout under way; null: none
  bool judged_ = false;                        // both arms were eligible at the draw: the first attempt is evidence
  bool observed_ = false;
  bool shielded_ = false;
  bool done_ = false;
  EndpointState* endpoint_ = nullptr;  // of the attempt under way
  net::Call call_;
  net::Timer guard_deadline_;
};

}  // namespace serin::router
