#include "router/rollout/sample_guard.h"

#include <fmt/format.h>

#include <cmath>

namespace serin::rollout {
namespace {

constexpr int kStaleAfter = 3;  // intervals

}  // namespace

bool SampleGuard::observe(std::optional<double> value, std::chrono::milliseconds at) {
  if (!value || !std::isfinite(*value)) return false;  // neither a breach nor the end of one
  last_ = value;
  last_at_ = at;
  const bool breach = *value > asked_.max;
  tape_.add(breaches_, {.at = at, .arm = Arm::kCanary, .share = *value, .bad = breach});
  breaches_ = breach ? breaches_ + 1 : 0;
  breaches_ever_ += breach;
  tape_.set_bits(breaches_);
  return breaches_ >= asked_.breaches;
}

std::string SampleGuard::held(std::chrono::milliseconds at) const {
  if (!last_) return fmt::format("held: {} has no answer yet", name_);
  if (at - last_at_ > kStaleAfter * asked_.interval)
    return fmt::format("held: {} has had no fresh answer for {}", name_, config::print_duration(at - last_at_));
  return breaches_ > 0 ? fmt::format("held: {} is {:g}, above {:g}", name_, *last_, asked_.max) : "";
}

Evidence SampleGuard::evidence() const {
  return {.guard = name_,
          .bits = static_cast<double>(breaches_),
          .bits_to_trip = static_cast<double>(asked_.breaches),
          .canary_events = breaches_ever_};
}

Verdict SampleGuard::verdict() const {
  return {name_, fmt::format("{}: {:g} is above {:g}, {} times in a row", name_, last_.value_or(0), asked_.max, breaches_)};
}

VerdictRecord SampleGuard::record() const {
  return {.guard = name_,
          .question = VerdictRecord::Question::kSamples,
          .trip_value = static_cast<double>(asked_.breaches),
          .p0 = asked_.max,
          .events = tape_.events()};
}

}  // namespace serin::rollout
