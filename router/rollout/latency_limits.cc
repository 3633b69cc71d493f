#include "router/rollout/latency_limits.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace serin::rollout {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

LatencyLimits::LatencyLimits(const Guard& guard, const Baseline& before)
    : slack_(guard.latency_slack), floor_(guard.latency_floor), wanted_(guard.latency_baseline), seen_(before) {
  versions_.reserve(kKept);
  if (seen_.count() >= kFirst) adopt(milliseconds::min());
}

void LatencyLimits::learn(nanoseconds latency, milliseconds at) {
  seen_.record(latency);
  if (seen_.count() >= due_) adopt(at);
}

/// Once there are enough answers, the limits follow the load of the day: each is learned from answers of its own.
void LatencyLimits::adopt(milliseconds at) {
  Version version{.from = at, .limits = {}};
  size_t next = 0;
  const auto add = [&](nanoseconds stable) {
    version.limits[next++] = {stable, floor_ + nanoseconds(std::llround((1 + slack_) * static_cast<double>(stable.count())))};
  };
  for (const double quantile : kQuantiles) add(seen_.quantile(quantile));
  const nanoseconds p99 = version.limits[kP99].stable;
  for (const int multiple : kMultiples) add(multiple * p99);
  if (versions_.size() == kKept) versions_.erase(versions_.begin());
  versions_.push_back(version);

  learned_ = seen_.count();
  if (learned_ >= wanted_) {
    seen_.clear();
    due_ = wanted_;
    return;
  }
  while (due_ <= learned_) due_ *= 2;
  due_ = std::min(due_, wanted_);
}

const LatencyLimits::Limits* LatencyLimits::at(milliseconds drawn) const {
  for (const Version& version : versions_ | std::views::reverse)
    if (version.from <= drawn) return &version.limits;
  return versions_.size() == kKept ? &versions_.front().limits : nullptr;
}

}  // namespace serin::rollout
