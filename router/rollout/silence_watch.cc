#include "router/rollout/silence_watch.h"

namespace serin::rollout {
namespace {

constexpr std::chrono::seconds kDeadlineIfNone{5};

}  // namespace

SilenceWatch::SilenceWatch(const Guard& guard) : deadline_(guard.deadline.value_or(kDeadlineIfNone)) {}

void SilenceWatch::observe(const Observation& observation, Time now) {
  const bool answered = !is_silent_failure(observation);
  if (observation.arm == Arm::kStable) {
    stable_answered_ = stable_answered_ || (since_ && answered);
  } else if (answered) {
    restart();
  } else if (!since_) {
    since_ = now;
  }
}

void SilenceWatch::restart() {
  since_.reset();
  stable_answered_ = false;
}

}  // namespace serin::rollout
