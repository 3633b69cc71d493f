// metric_outcomes.h: Everything that is known of one metric of a service: the versions, each two of them compared, and the reports that were counted.
//
//   MetricOutcomes metric({.name = "conversion"}, {"1", "2"});
//   SERIN_TRY(const bool counted, metric.add(assignment, 1.0));     // false: it was reported before
//   MetricSummary summary = metric.summary();
//
// Pure: no clock and no store. state() and restore() are for those who have one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/config_outcomes.h"
#include "router/outcomes/assignment.h"
#include "router/outcomes/mean_difference.h"
#include "router/outcomes/recent_ids.h"
#include "router/outcomes/summary.h"
#include "runtime/base/result.h"

namespace serin::router {

class MetricOutcomes {
 public:
  static constexpr size_t kMostVersions = kMostCompared;

  /// `versions` are those of router.yaml: a report of any other one is refused.
  MetricOutcomes(MetricConfig config, std::vector<std::string> versions);

  /// False: a report of this draw was counted before. kInvalidArgument, kOutOfRange or kFailedPrecondition: it cannot be counted.
  Result<bool> add(const Assignment& assigned, double value);
  MetricSummary summary() const;
  /// Forgets everything, with a new alpha.
  void reset();

  const MetricConfig& config() const { return config_; }
  const RecentIds& ids() const { return ids_; }
  /// All of it as JSON, except the full chunks of the IDs.
  std::string state() const;
  /// kCorrupt: not a state. False: of another range, so that nothing of it can be used. The IDs of full chunks follow by restore_chunk().
  Result<bool> restore(std::string_view state);
  bool restore_chunk(uint64_t number, std::string_view digits) { return ids_.restore_chunk(number, digits); }

 private:
  struct Version {
    std::string name;
    uint64_t reports = 0;
    double values = 0;  // scaled to [0, 1]
  };
  struct Pair {
    size_t version = 0, than = 0;
    double alpha = 0;  // its share of 1 - confidence
    MeanDifference difference;
  };

  size_t find(std::string_view name) const;
  Result<std::vector<size_t>> admit(const Assignment& assigned);
  void meet(std::span<const size_t> versions);
  Pair* find_pair(size_t one, size_t other);
  OutcomeComparison compare(const Pair& pair) const;

  const MetricConfig config_;
  const std::vector<std::string> known_;
  std::vector<Version> versions_;
  std::vector<Pair> pairs_;
  double alpha_left_ = 1;
  RecentIds ids_;
};

}  // namespace serin::router
