// rank_process.cc: bets on the rank of each answer.
//
// Let r be a rising function of the rank, w the canary's share. An answer of the canary multiplies the evidence by r / (1 - w + w r), one of
// stable by 1 / (1 - w + w r). If the canary is not slower in any context, the first factor, which rises, has on its answers at most the mean
// that it has on stable's, and
//
//   w r / (1 - w + w r) + (1 - w) / (1 - w + w r) = 1        at every rank
//
// so an answer multiplies the evidence by at most 1 on average, whatever the ranks of both arms are distributed like. The limits may be badly
// learned: that costs power only. r need not have the mean 1.
//
// Two-sided, r < 1 at low ranks makes a fast answer of the canary evidence for it, and a fast answer of stable evidence against the canary.
// That needs the exact share: a share too high makes fast answers of stable count for too much. One-sided, r is raised to 1 at low ranks.
// Then every factor of stable is at most 1, a share that is too high is safe, and units (representative.cc) multiply as for any bad event.
//
// A request that stable fails has no time. The canary, which does not fail it, is compared with nothing then: its factor alone, whose mean may be
// above 1. So a failure of stable has the factor (1 - w m) / (1 - w), m the mean of the canary's factor if its ranks are as usual. If stable is down,
// more than the usual comes to the canary and slows it down: then a failure counts as the slowest answer (latency_guards.cc), which is always safe.
//
// The shapes: stable's latencies shifted by 0.3, 0.6, 1.2 standard deviations of their normal scores; nearly all beyond twice p99; and 1, 3,
// 10, 30 % of answers moved into the tail. The ratios are those of the masses of the ranks. They were chosen by simulation among a dozen sets.

#include "router/rollout/rank_process.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace serin::rollout {
namespace {

constexpr size_t kRanks = RankProcess::kRanks;
constexpr size_t kShapes = RankProcess::kShapes;
using Masses = std::array<double, kRanks>;

/// Of stable. Those beyond multiples of p99 differ from service to service: usual values.
constexpr Masses kStable{0.25, 0.25, 0.25, 0.15, 0.07, 0.02, 0.0085, 0.0013, 0.0002};
/// Upper ends of the ranks, in normal scores.
constexpr std::array<double, kRanks - 1> kScores{-0.6745, 0, 0.6745, 1.2816, 1.8808, 2.3263, 2.9677, 3.5401};

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

Masses shifted(double by) {
  Masses masses{};
  double below = 0;
  for (size_t i = 0; i < kRanks; ++i) {
    const double up_to = i + 1 < kRanks ? normal_cdf(kScores[i] - by) : 1;
    masses[i] = up_to - below;
    below = up_to;
  }
  return masses;
}

/// A part of stable's answers moves into the upper ranks: to each of the last four its share of that part.
Masses moved(double part, std::array<double, 4> shares) {
  Masses masses = kStable;
  for (double& mass : masses) mass *= 1 - part;
  for (size_t i = 0; i < shares.size(); ++i) masses[kRanks - shares.size() + i] += part * shares[i];
  return masses;
}

RankProcess::Ratios make_ratios() {
  const std::array<Masses, RankProcess::kShapes> shapes{shifted(0.3),
                                                        shifted(0.6),
                                                        shifted(1.2),
                                                        moved(0.9, {0, 0.1, 0.3, 0.6}),
                                                        moved(0.01, {0, 0.1, 0.4, 0.5}),
                                                        moved(0.03, {0, 0.2, 0.4, 0.4}),
                                                        moved(0.1, {0.2, 0.2, 0.4, 0.2}),
                                                        moved(0.3, {0.2, 0.3, 0.3, 0.2})};
  RankProcess::Ratios ratios{};
  for (size_t j = 0; j < shapes.size(); ++j) {
    double largest = 0;
    for (size_t i = 0; i < kRanks; ++i) ratios[i][j] = largest = std::max(largest, shapes[j][i] / kStable[i]);
  }
  return ratios;
}

/// Of a failure of stable, one for each shape.
std::array<double, RankProcess::kShapes> failed_factors(double w, double least) {
  std::array<double, RankProcess::kShapes> factors{};
  for (size_t j = 0; j < factors.size(); ++j) {
    double mean = 0;
    for (size_t i = 0; i < kRanks; ++i) {
      const double ratio = std::max(RankProcess::ratios()[i][j], least);
      mean += kStable[i] * ratio / (1 - w + w * ratio);
    }
    factors[j] = w < 1 ? std::clamp((1 - w * mean) / (1 - w), 0.0, 1.0) : 1;
  }
  return factors;
}

}  // namespace

const RankProcess::Ratios& RankProcess::ratios() {
  static const Ratios kRatios = make_ratios();
  return kRatios;
}

RankProcess::RankProcess(double tolerated_ratio) : tolerated_ratio_(tolerated_ratio) {}

void RankProcess::observe(Arm arm, size_t rank, double share, bool one_sided, double units) {
  rank = std::min(rank, kFailed);
  one_sided = one_sided || always_one_sided();
  Factors& factors = factors_[one_sided ? 1 : 0][static_cast<size_t>(arm)][rank];
  if (factors.share != share) factors = {share, make_factors(arm, rank, share, one_sided)};
  if (units == 1)
    state_.observe(kAnswersPerStart, kLargestEvidence, [&](size_t j) { return factors.of[j]; });
  else
    state_.observe(kAnswersPerStart, kLargestEvidence, [&](size_t j) { return std::pow(factors.of[j], units); });
  e_ = state_.e();
}

std::array<double, kShapes> RankProcess::make_factors(Arm arm, size_t rank, double share, bool one_sided) const {
  const double drawn = std::clamp(share, 0.0, 1.0);
  const double w = tolerated_ratio_ * drawn / (1 - drawn + tolerated_ratio_ * drawn);
  const double least = one_sided ? 1 : 0;
  if (rank == kFailed) return failed_factors(w, least);
  std::array<double, kShapes> factors{};
  for (size_t j = 0; j < kShapes; ++j) {
    const double ratio = std::max(ratios()[rank][j], least);
    factors[j] = (arm == Arm::kCanary ? ratio : 1) / (1 - w + w * ratio);
  }
  return factors;
}

void RankProcess::restore(const MixtureState& state) {
  state_ = state;
  e_ = state.e();
}

}  // namespace serin::rollout
