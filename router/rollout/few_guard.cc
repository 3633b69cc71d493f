// few_guard.cc: a healthy canary is one of two things, and both must be refuted:
//
//   the same model    P(far) <= 0.05 %          far: another label by a wide margin
//   another model     P(same) <= 20 %           same: the whole row within rounding; of the pairs that can tell (proxy/likeness.h)
//
// each given everything before the pair. A BernoulliMixture tests each, and a rollback needs both at the trip value c. Let H be the union of
// the two hypotheses. Where the first holds, E_far is a supermartingale that starts at 1, and
// P(rolled back) <= P(E_far ever reaches c) <= 1/c by Ville's inequality, whatever E_same does. Where the second holds, the same is true of
// E_same. So the error is at most 1/c under every member of H, without a correction for two tests: neither of them decides alone.
// The bound concerns each process by itself, so they need not be at c together. E_same is stopped once it is there: what the models are
// does not change, and a fault that begins later does not make them another model.

#include "router/rollout/few_guard.h"

#include <fmt/format.h>

#include <cmath>

namespace serin::rollout {
namespace {

constexpr double kRareFar = 0.0005;
constexpr double kSameByChance = 0.2;

}  // namespace

FewGuard::FewGuard(double trip_value)
    : trip_value_(trip_value), now_{BernoulliMixture(kRareFar), BernoulliMixture(kSameByChance)}, before_good_(now_) {}

bool FewGuard::observe(const ShadowPair& pair, std::chrono::milliseconds at) {
  ++pairs_;
  far_ += pair.far;
  telling_ += pair.same.has_value();
  same_ += pair.same.value_or(false);
  const bool asked = pair.same && now_.same.e() < trip_value_;
  if (!pair.far && !asked) {  // only counted on the tape: hundreds of them come between two events
    if (good_since_++ == 0) before_good_ = now_;
    now_.far.observe(false);
    return false;
  }
  DecidingEvent event{.at = at, .arm = Arm::kCanary, .bad = pair.far, .good_before = good_since_};
  if (asked) event.same = pair.same;
  tape_.add(good_since_ > 0 ? before_good_ : now_, event);
  good_since_ = 0;
  now_.far.observe(pair.far);
  if (asked) now_.same.observe(*pair.same);
  tape_.set_bits(std::log2(now_.joint()));
  return now_.joint() >= trip_value_;
}

Evidence FewGuard::evidence() const {
  return {.guard = kName, .bits = std::log2(now_.joint()), .bits_to_trip = std::log2(trip_value_), .canary_events = far_};
}

VerdictRecord FewGuard::record() const {
  const Processes& begin = tape_.begin(now_);
  return {.guard = kName,
          .question = VerdictRecord::Question::kAboveAndSame,
          .trip_value = trip_value_,
          .p0 = kRareFar,
          .above = begin.far.state(),
          .same_p0 = kSameByChance,
          .same = begin.same.state(),
          .events = tape_.events()};
}

Verdict FewGuard::verdict() const {
  return {kName,
          fmt::format("{}: {} of {} answers have an entirely different label from stable's, while {} of {} are numerically the same; "
                      "e-value 2^{:.1f} over 2^{:.1f}. If that is intended, set guard.output.maxDisagreement to a number",
                      kName, far_, pairs_, same_, telling_, std::log2(now_.joint()), std::log2(trip_value_))};
}

}  // namespace serin::rollout
