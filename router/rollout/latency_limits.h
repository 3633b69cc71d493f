// latency_limits.h: Stable's latency quantiles, learned while it answers, to which the answers of both arms are compared.
//
// They are learned from 16, 32, 64 ... answers of stable, and from `latency.baseline` (10,000) answers on from each further so many. Answers
// before the rollout count. An answer is compared with the limits in force when its request was drawn. So the limits do not depend on the
// arm of the request, and comparing is fair however few answers they are learned from (README.md, "Latency").
//
//   LatencyLimits limits(guard, baseline);
//   limits.learn(latency, at);                                   // every good answer of stable
//   if (const auto* in_force = limits.at(at - latency)) ...      // of either arm
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "router/rollout/observation.h"
#include "router/rollout/report.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

class LatencyLimits {
 public:
  static constexpr size_t kLimits = 8;
  /// The quantile of each limit of stable; the last two are multiples of its p99.
  static constexpr std::array<double, 6> kQuantiles{0.25, 0.5, 0.75, 0.9, 0.97, 0.99};
  static constexpr std::array<int, 2> kMultiples{2, 4};
  static constexpr std::array<std::string_view, kLimits> kNames{"p25", "p50", "p75", "p90", "p97", "p99", "2 x p99", "4 x p99"};
  enum Index : size_t { kP50 = 1, kP90 = 3, kP99 = 5, kTwiceP99 = 6 };
  static constexpr std::array<size_t, 4> kMain{kP50, kP90, kP99, kTwiceP99};  ///< where one limit has to stand for all latencies

  struct Limit {
    std::chrono::nanoseconds stable, canary;  ///< the canary's includes slack and floor
    std::chrono::nanoseconds of(Arm arm) const { return arm == Arm::kCanary ? canary : stable; }
  };
  using Limits = std::array<Limit, kLimits>;  ///< they rise

  LatencyLimits(const Guard& guard, const Baseline& before);

  /// A good answer of stable that arrived `at` after the start of the rollout.
  void learn(std::chrono::nanoseconds latency, std::chrono::milliseconds at);
  /// In force at that time; null: not learned yet.
  const Limits* at(std::chrono::milliseconds drawn) const;
  /// How many answers the newest limits are learned from.
  uint64_t learned() const { return learned_; }
  /// Answers of stable until there are limits.
  uint64_t missing() const { return learned_ > 0 ? 0 : due_ - seen_.count(); }

 private:
  void adopt(std::chrono::milliseconds at);

  struct Version {
    std::chrono::milliseconds from;
    Limits limits;
  };
  static constexpr size_t kKept = 6;  // versions: enough for a request that takes 32 times as long as the others
  static constexpr uint64_t kFirst = 16;

  double slack_;
  std::chrono::nanoseconds floor_;
  uint64_t wanted_, due_ = kFirst, learned_ = 0;
  Baseline seen_;
  std::vector<Version> versions_;  // oldest first
};

}  // namespace serin::rollout
