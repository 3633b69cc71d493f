// event_guard.cc: attributes bad events to an arm, in a way that can be checked by hand.
//
// A shadow pair is two attempts, each drawn with share 1/2: with L_c >= 1 >= L_s the factors of a bad canary and a bad stable answer at w = 1/2,
//
//   E[factor] = 1 + p_c (L_c - 1) + p_s (L_s - 1) + P(both bad) (L_c - 1) (L_s - 1)
//
// holds for any dependence between the two, and they do depend, being the same request. The last term is <= 0; where p_c <= rho_0 p_s the
// middle two are at most p_s (rho_0 (L_c - 1) + L_s - 1) = 0. So a pair keeps the supermartingale, and a canary that refuses everything
// is caught while it is only shadowed.

#include "router/rollout/event_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace serin::rollout {
namespace {

/// How many of the latest events make the strongest case: the likeliest moment at which the canary went bad.
size_t strongest_suffix(const std::vector<DecidingEvent>& events, double tolerated_ratio) {
  size_t longest = events.size();
  double best = 0;
  for (double ratio = 2; ratio <= 256; ratio *= 2) {
    double sum = 0;
    for (size_t back = 1; back <= events.size(); ++back) {
      const DecidingEvent& event = events[events.size() - back];
      const double w = event.share;
      const double stable = (1 - w + tolerated_ratio * w) / (1 - w + tolerated_ratio * ratio * w);
      sum += event.units * std::log(event.arm == Arm::kCanary ? ratio * stable : stable);
      if (sum <= best) continue;
      best = sum;
      longest = back;
    }
  }
  return longest;
}

}  // namespace

std::string at_share(double share) { return fmt::format("at {:.3g} % of traffic", 100 * share); }

void observe(EventProcess& process, const DecidingEvent& event, bool mirrored) {
  if (event.units == 0) return;  // compared with nobody
  if (!mirrored) return process.observe(event.arm, event.share, event.units);
  process.observe(event.arm == Arm::kCanary ? Arm::kStable : Arm::kCanary, 1 - event.share, event.units);
}

EventGuard::EventGuard(std::string name, double tolerated_ratio, double trip_value, bool mirrored)
    : name_(std::move(name)), tolerated_ratio_(tolerated_ratio), trip_value_(trip_value), mirrored_(mirrored), process_(tolerated_ratio) {}

bool EventGuard::observe(Arm arm, const Unit& unit, std::chrono::milliseconds at) {
  const DecidingEvent event{.at = at, .arm = arm, .share = unit.share, .units = unit.count};
  tape_.add(process_.state(), event);
  rollout::observe(process_, event, mirrored_);
  tape_.set_bits(std::log2(process_.e()));
  ++counts_[static_cast<size_t>(arm)];
  return tripped();
}

bool EventGuard::observe_pair(const std::optional<Unit>& stable_bad, const std::optional<Unit>& canary_bad, std::chrono::milliseconds at) {
  if (canary_bad) observe(Arm::kCanary, *canary_bad, at);
  if (stable_bad) observe(Arm::kStable, *stable_bad, at);  // both first: the pair is one step of the process
  return tripped();
}

Evidence EventGuard::evidence() const {
  return {.guard = name_,
          .bits = std::log2(process_.e()),
          .bits_to_trip = std::log2(trip_value_),
          .stable_events = counts_[0],
          .canary_events = counts_[1]};
}

VerdictRecord EventGuard::record() const {
  return {.guard = name_,
          .question = VerdictRecord::Question::kWorse,
          .trip_value = trip_value_,
          .tolerated_ratio = tolerated_ratio_,
          .mirrored = mirrored_,
          .worse = tape_.begin(process_.state()),
          .events = events()};
}

Verdict EventGuard::verdict(std::string_view where) const {
  const auto latest = events();
  const auto last = static_cast<ptrdiff_t>(strongest_suffix(latest, tolerated_ratio_));
  const auto canary =
      std::count_if(latest.end() - last, latest.end(), [](const DecidingEvent& event) { return event.arm == Arm::kCanary; });
  return {name_, fmt::format("{}: {} of the last {} bad answers were the canary's {}; e-value 2^{:.1f} over 2^{:.1f}", name_, canary, last,
                             where, std::log2(process_.e()), std::log2(trip_value_))};
}

}  // namespace serin::rollout
