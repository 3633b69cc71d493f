// threshold_guard.cc: two questions, both answered by evidence at the same trip value.
//
//   above the limit?      BernoulliMixture on the canary's units
//   worse than stable?    EventProcess on the same bad events of both arms
//
// A canary below the limit passes the first with probability at most alpha * share, one no worse than stable the second: each of the two
// innocents is safe however long the rollout runs, in an outage too. Looking at stable's recent rate instead is not enough: at a weight of
// half a handful of answers trips the first question before stable has shown anything.
//
// Above the limit but not worse than stable: the steps hold. The first process is capped a little above its trip, so that the hold ends
// some hundred answers after the outage does. A stable that gets no traffic cannot speak: then the first answer decides alone.

#include "router/rollout/threshold_guard.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace serin::rollout {
namespace {

constexpr double kCap = 16;  // times the trip value

}  // namespace

ThresholdGuard::ThresholdGuard(Limit limit) : limit_(std::move(limit)), above_limit_(limit_.p0, kCap * limit_.trip_value) {}

bool ThresholdGuard::observe(Arm arm, bool bad, const Unit& unit, bool alone) {
  if (bad) worse_than_stable_.observe(arm, unit.share, unit.count);
  if (arm == Arm::kStable) {
    stable_units_ += unit.representative;
    stable_bad_ += bad && unit.representative;
    return false;
  }
  ++canary_units_;
  canary_bad_ += bad;
  above_limit_.observe(bad);
  if (above_limit_.e() < limit_.trip_value) return false;
  return !limit_.ask_stable || alone || worse_than_stable_.e() >= limit_.trip_value;
}

Evidence ThresholdGuard::evidence() const {
  return {.guard = limit_.name,
          .bits = std::log2(above_limit_.e()),
          .bits_to_trip = std::log2(limit_.trip_value),
          .stable_events = stable_bad_,
          .canary_events = canary_bad_};
}

Verdict ThresholdGuard::verdict() const {
  return {limit_.name, fmt::format("{}: {} in {} of the canary's {} answers, and in {} of stable's {}; e-value 2^{:.1f} over 2^{:.1f}",
                                   limit_.name, limit_.text, canary_bad_, canary_units_, stable_bad_, stable_units_,
                                   std::log2(above_limit_.e()), std::log2(limit_.trip_value))};
}

}  // namespace serin::rollout
