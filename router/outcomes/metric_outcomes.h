// metric_outcomes.h: Everything that is known of one metric of a service: the versions, each two of them compared, and the reports that were counted.
//
//   MetricOutcomes metric({.name = "conversion"}, {"1", "2"});
//   SERIN_TRY(const bool counted, metric.add(assignment, 1.0));     // false: it was reported before
//   MetricSummary summary = metric.summary();
//
// Pure: no clock and no store. state() and restore() are for those who have one.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/config_outcomes.h"
#include "router/outcomes/assignment.h"
#include "router/outcomes/mean_difference.h"
#include "router/outcomes/recent_ids.h"
#include "router/outcomes/summary.h"
#include "router/rollout/outcome_guard.h"
#include "router/rollout/outcome_process.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::router {

/// log of the e-value at which a metric is called unbalanced: that often a false alarm may be heard for each pair.
inline const double kLogUnbalanced = std::log(1000);

class MetricOutcomes {
 public:
  static constexpr size_t kMostVersions = kMostCompared;

  /// `versions` are those of router.yaml: a report of any other one is refused.
  MetricOutcomes(MetricConfig config, std::vector<std::string> versions);

  /// False: a report of this draw was counted before. kInvalidArgument, kOutOfRange or kFailedPrecondition: it cannot be counted.
  Result<bool> add(const Assignment& assigned, double value);
  MetricSummary summary() const;

  /// The guard of a rollout asks for the outcomes of requests that were drawn between its two versions since it began.
  struct FollowedRollout {
    std::string id, stable, canary;
    double margin = 0;      ///< by which the canary may be worse, in the unit of the metric
    uint64_t since_ms = 0;  ///< since 1970
  };
  /// Counts them from now on; it follows the latest 8 rollouts. False: it does already.
  bool follow(const FollowedRollout& rollout);
  /// Nothing: it is not followed, or nothing was reported.
  std::optional<rollout::OutcomeEvidence> evidence_of(std::string_view rollout) const;
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

  struct Followed {
    FollowedRollout rollout;
    MeanDifference difference;  // of the canary minus stable, where larger values are better
    rollout::OutcomeProcess process;
  };

  double unit() const { return config_.most - config_.least; }  // of the metric, that 1 stands for in all sums
  size_t find(std::string_view name) const;
  Result<std::vector<size_t>> admit(const Assignment& assigned);
  void meet(std::span<const size_t> versions);
  const Followed* find_followed(std::string_view rollout) const;
  Status restore_followed(const config::Node& entry);
  void add_to(Followed& followed, const Assignment& assigned, double scaled) const;
  Pair* find_pair(size_t one, size_t other);
  OutcomeComparison compare(const Pair& pair) const;

  const MetricConfig config_;
  const std::vector<std::string> known_;
  std::vector<Version> versions_;
  std::vector<Pair> pairs_;
  std::vector<Followed> followed_;  // oldest first
  double alpha_left_ = 1;
  RecentIds ids_;
};

}  // namespace serin::router
