// alpha_budget.h: Divides the probability of rolling back a healthy canary (guard.falseRollback) among the guards.
//
// Guard m rolls back when its e-value reaches 1/(alpha * share_m). By Ville's inequality a healthy canary ever reaches that with
// probability at most alpha * share_m. The shares add up to 1, so by the union bound all guards together keep alpha for the whole rollout.
#pragma once

#include "router/rollout/spec.h"

namespace serin::rollout {

inline constexpr double kErrorShare = 0.30;
inline constexpr double kRejectedShare = 0.05;
inline constexpr double kDeadlineShare = 0.05;
inline constexpr double kLatencyShare = 0.20;    ///< of sticky requests: a quarter for each of four limits
inline constexpr double kOutputShare = 0.15;     ///< form, labels and scores of unpaired answers: divided in output_guards.cc
inline constexpr double kShadowShare = 0.10;     ///< all pairs; half of it is that of few_guard.h where it judges as well
inline constexpr double kThresholdShare = 0.11;  ///< split evenly among the thresholds and the outcomes that the user names
inline constexpr double kResourceShare = 0.04;   ///< a quarter each for memory, descriptors, memory of GPUs and CPU time

static_assert(kErrorShare + kRejectedShare + kDeadlineShare + kLatencyShare + kOutputShare + kShadowShare + kThresholdShare +
                  kResourceShare <
              1 + 1e-9);

/// With slices, the classes of requests have half of the parts of errors, latency and shadow, all together.
inline double part_of_all(const Guard& guard) { return guard.slices.empty() ? 1 : 0.5; }
inline double error_share(const Guard& guard) { return kErrorShare * part_of_all(guard); }
inline double latency_share(const Guard& guard) { return kLatencyShare * part_of_all(guard); }
inline double shadow_share(const Guard& guard) { return kShadowShare * part_of_all(guard); }
inline constexpr size_t kMostClasses = 16;  ///< of a slice
/// Of one class; `share`: kErrorShare, kLatencyShare or kShadowShare.
inline double class_share(const Guard& guard, double share) {
  return share * (1 - part_of_all(guard)) / static_cast<double>(kMostClasses * guard.slices.size());
}

inline constexpr double trip_value(double alpha, double share) { return 1 / (alpha * share); }

}  // namespace serin::rollout
