// threshold_guard.cc: above the limit, and not together with stable.
//
// The mixture alone answers "is the canary above the limit?". In an outage of both arms the answer is yes, and at a large weight it comes after
// a handful of answers, before stable has had time to show the same. So a trip waits until stable has answered kConfirm more units and
// is then compared with stable's recent rate: if that is not clearly below the limit, the verdict is "held", all evidence is dropped and
// gathered anew (so one look is taken per trip, not one per answer). A stable that gets no traffic cannot speak: then the trip stands.

#include "router/rollout/threshold_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace serin::rollout {
namespace {

constexpr uint64_t kConfirm = 64;    // stable's units after a trip: an outage that began a moment ago is in them
constexpr double kRecentEvents = 4;  // the recent window is long enough to expect so many at the limit
constexpr double kLongestWindow = 1 << 16;

size_t window_length(double p0) {
  return static_cast<size_t>(std::clamp(kRecentEvents / p0, static_cast<double>(kConfirm), kLongestWindow));
}

}  // namespace

ThresholdGuard::ThresholdGuard(Limit limit) : limit_(std::move(limit)), canary_(limit_.p0), stable_recent_(window_length(limit_.p0)) {}

void ThresholdGuard::observe_stable(bool bad) {
  const size_t slot = stable_units_ % stable_recent_.size();
  stable_recent_bad_ += static_cast<uint64_t>(bad) - static_cast<uint64_t>(stable_recent_[slot]);
  stable_recent_[slot] = bad;
  ++stable_units_;
  stable_bad_ += bad;
}

bool ThresholdGuard::stable_breaches() const {
  const double units = static_cast<double>(std::min<uint64_t>(stable_units_, stable_recent_.size()));
  const double expected = units * limit_.p0;
  const double clearly_below = expected - std::sqrt(expected * (1 - limit_.p0));
  return static_cast<double>(stable_recent_bad_) > std::max(0.0, clearly_below);
}

bool ThresholdGuard::observe_canary(bool bad, double share) {
  canary_.observe(bad);
  canary_bad_ += bad;
  if (!pending_) {
    if (canary_.e() < limit_.trip_value) return false;
    pending_ = true;
    stable_at_trip_ = stable_units_;
    highest_ = canary_.e();
  }
  if (!limit_.ask_stable || share >= 1) return true;
  if (stable_units_ - stable_at_trip_ < kConfirm) return false;
  pending_ = false;
  if (!stable_breaches()) return true;
  holding_ = true;
  canary_.reset();
  return false;
}

Evidence ThresholdGuard::evidence() const {
  return {.guard = limit_.name,
          .bits = std::log2(canary_.e()),
          .bits_to_trip = std::log2(limit_.trip_value),
          .stable_events = stable_bad_,
          .canary_events = canary_bad_};
}

Verdict ThresholdGuard::verdict() const {
  return {limit_.name, fmt::format("{}: {}, in {} of the canary's last {} answers; e-value 2^{:.1f} over 2^{:.1f}", limit_.name,
                                   limit_.text, canary_bad_, canary_.answers(), std::log2(highest_), std::log2(limit_.trip_value))};
}

}  // namespace serin::rollout
