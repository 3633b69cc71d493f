// rank_process.h: Tests whether the canary's answers take longer than stable's, from their ranks among stable's.
//
//   RankProcess slower;
//   slower.observe(Arm::kCanary, /*rank=*/7, /*share=*/0.05);      // slower than 7 of the 8 limits (latency_limits.h)
//   if (slower.e() >= trip_value(0.001, kLatencyShare)) roll_back();
//
// README.md, "Latency", has the proof. Every answer counts, good or bad: the test needs no finished baseline.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "router/rollout/latency_limits.h"
#include "router/rollout/mixture_state.h"

namespace serin::rollout {

class RankProcess {
 public:
  static constexpr size_t kRanks = LatencyLimits::kLimits + 1;  ///< 0: not slower than the lowest limit
  static constexpr size_t kShapes = MixtureState::kAlternatives;
  static constexpr size_t kFailed = kRanks;  ///< of a request that stable failed: rank_process.cc

  /// tolerated_ratio: how many times more often than stable the canary may exceed any limit.
  explicit RankProcess(double tolerated_ratio = 1.0);

  /// One answer of a request that was drawn with this share of the canary. one_sided: the share is only known to be no less than that, or the
  /// arms batch differently; then a fast answer is no evidence. units: what the answer counts for, at most one.
  void observe(Arm arm, size_t rank, double share, bool one_sided = false, double units = 1);
  /// A tolerance admits that the canary is slower, so a fast answer is no evidence.
  bool always_one_sided() const { return tolerated_ratio_ != 1; }
  double e() const { return e_; }
  const MixtureState& state() const { return state_; }
  void restore(const MixtureState& state);

  using Ratios = std::array<std::array<double, kShapes>, kRanks>;
  /// How many times as probable as on stable an answer of each rank is on a canary of each shape. Rises with the rank.
  static const Ratios& ratios();

 private:
  /// By which an answer multiplies the evidence. Kept for each kind of answer, because the share seldom changes.
  struct Factors {
    double share = std::numeric_limits<double>::quiet_NaN();  // not made yet
    std::array<double, kShapes> of{};
  };
  std::array<double, kShapes> make_factors(Arm arm, size_t rank, double share, bool one_sided) const;

  double tolerated_ratio_;
  MixtureState state_;
  double e_ = 1;
  std::array<std::array<std::array<Factors, kFailed + 1>, 2>, 2> factors_{};  // by one_sided, arm, rank
};

}  // namespace serin::rollout
