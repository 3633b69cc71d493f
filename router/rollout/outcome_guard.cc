#include "router/rollout/outcome_guard.h"

#include <fmt/format.h>

#include <cmath>

namespace serin::rollout {

bool OutcomeGuard::observe(const OutcomeEvidence& evidence, std::chrono::milliseconds at) {
  latest_ = evidence;
  at_ = at;
  return latest_.balanced && latest_.worse.e() >= trip_value_;
}

std::string OutcomeGuard::held() const {
  if (latest_.balanced) return "";
  return fmt::format("held: {}: reports are missing more often for one of the two versions, so their difference means nothing", name_);
}

Evidence OutcomeGuard::evidence() const {
  return {
      .guard = name_, .bits = std::log2(latest_.worse.e()), .bits_to_trip = std::log2(trip_value_), .canary_events = latest_.worse.count};
}

Verdict OutcomeGuard::verdict() const {
  return {name_, fmt::format("{}: differs by {:.3g} from stable in {} reports, {:g} allowed; e-value 2^{:.1f} over 2^{:.1f}", name_,
                             latest_.difference, latest_.worse.count, asked_.margin, std::log2(latest_.worse.e()), std::log2(trip_value_))};
}

VerdictRecord OutcomeGuard::record() const {
  VerdictRecord record{.guard = name_,
                       .question = VerdictRecord::Question::kOutcomes,
                       .trip_value = trip_value_,
                       .p0 = asked_.margin,
                       .worse = latest_.worse};
  if (latest_.worse.count == 0) return record;
  record.events.push_back({.at = at_,
                           .arm = Arm::kCanary,
                           .share = latest_.difference,
                           .bits = std::log2(latest_.worse.e()),
                           .good_before = latest_.worse.count - 1});
  return record;
}

}  // namespace serin::rollout
