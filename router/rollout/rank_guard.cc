#include "router/rollout/rank_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace serin::rollout {
namespace {

/// The arms batch alike and alone, so that the canary's share of such answers is exactly that of the draw.
bool knows_exact_share(const Unit& unit) { return unit.ratio == 1 && unit.count == 1 && unit.share == unit.weight; }

}  // namespace

void observe(RankProcess& process, const DecidingEvent& event) {
  process.observe(event.arm, event.rank, event.share, event.one_sided, event.units);
}

void RankGuard::Latest::add(size_t rank) {
  if (ranks_.size() < most_) return ranks_.push_back(static_cast<uint8_t>(rank));
  ranks_[oldest_] = static_cast<uint8_t>(rank);
  oldest_ = (oldest_ + 1) % most_;
}

size_t RankGuard::Latest::slower_than(size_t limit) const {
  return static_cast<size_t>(std::ranges::count_if(ranks_, [limit](uint8_t rank) { return rank > limit; }));
}

RankGuard::RankGuard(std::string name, double tolerated_ratio, double trip_value)
    : name_(std::move(name)), tolerated_ratio_(tolerated_ratio), trip_value_(trip_value), process_(tolerated_ratio) {}

bool RankGuard::observe(Arm arm, size_t rank, const Unit& unit, bool one_sided, std::chrono::milliseconds at) {
  if (unit.share >= 1) return false;  // compared with nobody
  const DecidingEvent event{.at = at,
                            .arm = arm,
                            .share = unit.share,
                            .units = unit.count,
                            .bad = rank > LatencyLimits::kP90 && rank != RankProcess::kFailed,
                            .rank = static_cast<uint8_t>(rank),
                            .one_sided = one_sided || is_one_sided(arm, rank, unit)};
  one_sided_ = event.one_sided;
  since_canary_ = arm == Arm::kCanary ? 0 : since_canary_ + 1;
  tape_.add(process_.state(), event);
  rollout::observe(process_, event);
  slow_[static_cast<size_t>(arm)] += event.bad;
  if (rank != RankProcess::kFailed) latest_[static_cast<size_t>(arm)].add(rank);
  return process_.e() >= trip_value_;
}

/// While the canary's machine stands still for a moment, only stable answers, and fast. So its fast answers count up to three times the number that
/// usually comes between two of the canary's: all of them together are then no more evidence than one slow answer.
bool RankGuard::is_one_sided(Arm arm, size_t rank, const Unit& unit) const {
  constexpr double kUsualGaps = 3;
  const bool canary_is_late = arm == Arm::kStable && since_canary_ * unit.share >= kUsualGaps;
  return process_.always_one_sided() || !knows_exact_share(unit) || canary_is_late || (rank == RankProcess::kFailed && one_sided_);
}

Evidence RankGuard::evidence() const {
  return {.guard = name_,
          .bits = std::log2(process_.e()),
          .bits_to_trip = std::log2(trip_value_),
          .stable_events = slow_[0],
          .canary_events = slow_[1]};
}

VerdictRecord RankGuard::record() const {
  std::vector<DecidingEvent> events = tape_.events();
  RankProcess process(tolerated_ratio_);
  process.restore(tape_.begin(process_.state()));
  for (DecidingEvent& event : events) {  // here, as a logarithm an answer would be most of the cost of observe()
    rollout::observe(process, event);
    event.bits = std::log2(process.e());
  }
  return {.guard = name_,
          .question = VerdictRecord::Question::kSlower,
          .trip_value = trip_value_,
          .tolerated_ratio = tolerated_ratio_,
          .worse = tape_.begin(process_.state()),
          .events = std::move(events)};
}

/// The limit at which the arms differ most, by the relative entropy of the two rates.
size_t RankGuard::most_telling_limit() const {
  size_t best = LatencyLimits::kP50;
  double most = -1;
  for (const size_t limit : LatencyLimits::kMain) {
    const auto rate = [limit](const Latest& arm) {
      return (static_cast<double>(arm.slower_than(limit)) + 0.5) / (static_cast<double>(arm.size()) + 1);
    };
    const double stable = rate(latest_[0]), canary = rate(latest_[1]);
    const double entropy = canary * std::log(canary / stable) + (1 - canary) * std::log((1 - canary) / (1 - stable));
    if (canary <= stable || entropy < most) continue;  // of equals the highest
    most = entropy;
    best = limit;
  }
  return best;
}

Verdict RankGuard::verdict(std::string_view where) const {
  const size_t limit = most_telling_limit();
  const Latest& stable = latest_[0];
  const Latest& canary = latest_[1];
  return {name_, fmt::format("{}: {} of the canary's last {} answers were slower than stable's {}, {} of stable's last {}, {}; e-value "
                             "2^{:.1f} over 2^{:.1f}",
                             name_, canary.slower_than(limit), canary.size(), LatencyLimits::kNames[limit], stable.slower_than(limit),
                             stable.size(), where, std::log2(process_.e()), std::log2(trip_value_))};
}

}  // namespace serin::rollout
