// service_metrics.h: The metrics of a service's rollouts. Weights are read at scrape time (service_control.cc); all others are reported
// here.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "router/rollout/observation.h"
#include "router/rollout/rollout.h"
#include "runtime/base/metrics.h"

namespace serin::router {

/// Not thread-safe.
class ServiceMetrics {
 public:
  ServiceMetrics(metrics::Registry& registry, std::string service);

  void count(const rollout::Observation& observation) {
    attempts_[static_cast<size_t>(observation.arm)][static_cast<size_t>(observation.outcome)]->add();
  }
  void count(const rollout::ShadowPair& pair);
  void count_verdict(const std::string& outcome, const std::string& cause);
  void show(const rollout::Report& report, size_t steps);
  /// Another rollout starts: its guards and certificates may differ.
  void forget();

 private:
  struct Evidence {
    std::shared_ptr<metrics::Gauge> bits, trip;
  };
  static constexpr size_t kOutcomes = 5;

  metrics::Registry& registry_;
  const std::string service_;
  std::array<std::array<std::shared_ptr<metrics::Counter>, kOutcomes>, 2> attempts_;  // by arm and outcome
  std::array<std::shared_ptr<metrics::Counter>, 3> pairs_;
  std::vector<std::shared_ptr<metrics::Gauge>> phases_;
  std::shared_ptr<metrics::Gauge> step_, steps_;
  std::map<std::string, Evidence> evidence_;
  std::map<std::string, std::shared_ptr<metrics::Gauge>> certificates_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<metrics::Counter>> verdicts_;  // by outcome and cause
};

}  // namespace serin::router
