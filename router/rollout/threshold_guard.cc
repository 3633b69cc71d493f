// threshold_guard.cc: tests a limit by two questions, both answered by evidence at the same trip value.
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

#include <algorithm>
#include <cmath>
#include <utility>

namespace serin::rollout {
namespace {

constexpr double kCap = 16;  // times the trip value

}  // namespace

BernoulliMixture limit_process(double p0, double cap, bool seldom) {
  return BernoulliMixture(p0, cap, seldom ? BernoulliMixture::Side::kBelow : BernoulliMixture::Side::kAbove);
}

ThresholdGuard::ThresholdGuard(Limit limit)
    : limit_(std::move(limit)),
      now_{limit_process(limit_.p0, kCap * limit_.trip_value, limit_.seldom), EventProcess(limit_.tolerated_ratio)},
      before_good_(now_) {}

bool ThresholdGuard::observe(Arm arm, bool bad, const Unit& unit, bool alone, std::chrono::milliseconds at) {
  if (arm == Arm::kStable) {
    stable_units_ += unit.representative;
    stable_bad_ += bad && unit.representative;
    if (bad) tell(arm, bad, &unit, alone, at);
    return bad && limit_.seldom && decided(alone);  // what stable still does is evidence that the canary does it too rarely
  }
  ++canary_units_;
  canary_bad_ += bad;
  tell(arm, bad, &unit, alone, at);
  if (!decided(alone)) return false;
  if (!bad) keep_good(alone, at);
  return true;
}

/// The answer that decided was none of the events: it goes on the tape all the same, or the record would end before its decision.
void ThresholdGuard::keep_good(bool alone, std::chrono::milliseconds at) {
  tape_.add(before_good_, {.at = at, .arm = Arm::kCanary, .units = 0, .bad = false, .good_before = good_since_ - 1, .alone = alone});
  tape_.set_bits(std::log2(now_.above.e()));
  good_since_ = 0;
}

void ThresholdGuard::observe_cohort(bool bad, std::chrono::milliseconds at) {
  ++canary_units_;
  canary_bad_ += bad;
  tell(Arm::kCanary, bad, nullptr, false, at);
}

/// Good answers are only counted on the tape: a million of them come between two bad ones.
void ThresholdGuard::tell(Arm arm, bool bad, const Unit* unit, bool alone, std::chrono::milliseconds at) {
  if (!bad) {
    if (good_since_++ == 0) before_good_ = now_;
    return now_.above.observe(false);
  }
  DecidingEvent event{.at = at, .arm = arm, .good_before = good_since_, .alone = alone || !limit_.ask_stable};
  event.share = unit != nullptr ? unit->share : 0;
  event.units = unit != nullptr ? unit->count : 0;
  tape_.add(good_since_ > 0 ? before_good_ : now_, event);
  good_since_ = 0;
  rollout::observe(now_.worse, event, limit_.seldom);
  if (arm == Arm::kCanary) now_.above.observe(true);
  tape_.set_bits(std::log2(now_.above.e()));
}

VerdictRecord ThresholdGuard::record() const {
  const Processes& begin = tape_.begin(now_);
  return {.guard = limit_.name,
          .question = limit_.ask_stable ? VerdictRecord::Question::kAboveAndWorse : VerdictRecord::Question::kAbove,
          .trip_value = limit_.trip_value,
          .tolerated_ratio = limit_.tolerated_ratio,
          .mirrored = limit_.seldom,
          .p0 = limit_.p0,
          .cap = kCap * limit_.trip_value,
          .worse = begin.worse.state(),
          .above = begin.above.state(),
          .events = tape_.events()};
}

Evidence ThresholdGuard::evidence() const {
  return {.guard = limit_.name,
          .bits = std::log2(now_.above.e()),
          .bits_to_trip = std::log2(limit_.trip_value),
          .stable_events = stable_bad_,
          .canary_events = canary_bad_};
}

double ThresholdGuard::joint_bits() const { return std::log2(std::min(now_.above.e(), now_.worse.e())); }

Verdict ThresholdGuard::verdict() const {
  return {limit_.name, fmt::format("{}: {} in {} of the canary's {} answers, and in {} of stable's {}; e-value 2^{:.1f} over 2^{:.1f}",
                                   limit_.name, limit_.text, canary_bad_, canary_units_, stable_bad_, stable_units_,
                                   std::log2(now_.above.e()), std::log2(limit_.trip_value))};
}

}  // namespace serin::rollout
