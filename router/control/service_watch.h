// service_watch.h: The view of a service for displays: how its versions answer now, the course of its rollout, the next verdict, its metrics. For
// display only: no verdict uses it.
//
// Not thread-safe: ServiceControl locks.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "router/config/split.h"
#include "router/control/evidence_pace.h"
#include "router/control/recent_answers.h"
#include "router/control/service_metrics.h"
#include "router/control/service_state.h"
#include "router/control/service_status.h"
#include "router/control/timeline.h"
#include "runtime/base/metrics.h"

namespace serin::router {

class ServiceWatch {
 public:
  using Time = rollout::Time;
  using Recent = std::array<RecentAnswers, 2>;  // by arm

  ServiceWatch(metrics::Registry& metrics, const std::string& service, Time now) : metrics_(metrics, service) { timeline_.clear(now); }

  void count(const rollout::Observation& observation) {
    recent_[static_cast<size_t>(observation.arm)].record(observation);
    metrics_.count(observation);
  }
  void count(const rollout::ShadowPair& pair) { metrics_.count(pair); }
  void count_verdict(const rollout::State& state);
  /// Another rollout begins.
  void begin(Time now);
  /// Goes on with what an earlier controller saw of the same rollout.
  void go_on(const Recent& recent, Timeline timeline);

  /// Once a second, or when look_soon() was called: a quantile walks through thousands of buckets.
  bool is_due(Time now);
  void look_soon(Time at = {}) { next_look_ = at; }
  /// Adds to the course of the rollout until a minute after its verdict: then it is history.
  void look(const ServiceState& state, const Split& applied, Time now);

  ServiceStatus status(const ServiceState& state, Time now) const;
  const Recent& recent() const { return recent_; }
  const Timeline& timeline() const { return timeline_; }
  void show_metrics(const ServiceState& state);

 private:
  ServiceMetrics metrics_;
  Recent recent_;
  std::array<AnswerSummary, 2> recent_summary_;  // of recent_, renewed with the timeline
  Timeline timeline_;
  EvidencePace pace_;
  Time next_look_{}, watch_until_{};
};

}  // namespace serin::router
