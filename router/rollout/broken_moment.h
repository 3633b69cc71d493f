// broken_moment.h: Broken answers of one endpoint at one moment, until it is known whether the endpoint's process still lives.
//
// An answer that is cut off is the fault of one request, as a 500 is, if the process lives on. A process that is killed breaks all of its
// requests in progress at once: one event of the endpoint, not of the version. The break alone looks the same in both cases. So it waits for
// a sign of life: an answer of the endpoint, or another break, that cannot belong to the same moment. A refused connection is a sign of death.
// The router asks for one at once (Observation::sign), sooner than a process can be back and however little traffic there is.
//
//   BrokenMoment moment(observation, at);
//   if (moment.outlived_by(next, at)) ...   // the process lives: moment.answers() are errors of requests
//   if (moment.overdue(at)) ...             // nobody knows: as if it had died
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "router/rollout/observation.h"

namespace serin::rollout {

/// Reports of one moment come at most this far apart: from the threads of a busy router, and from another router.
inline constexpr std::chrono::milliseconds kOneMoment{20}, kOtherRouter{100};

/// Whether its request was drawn after `moment`, as far as is known.
inline bool drawn_after(std::chrono::nanoseconds moment, const Observation& observation, std::chrono::nanoseconds at) {
  if (observation.latency.count() == 0) return at - observation.late >= moment + kOneMoment;
  return at - observation.late - observation.latency > moment;
}

class BrokenMoment {
 public:
  /// The first break; observation.latency tells when its request was drawn.
  BrokenMoment(const Observation& observation, std::chrono::nanoseconds at) : at_(at), answers_{observation} {}

  /// Another break of the same moment. Stable's count one by one, as requests that were drawn one by one; the canary's are one.
  void add(const Observation& observation) {
    if (observation.arm == Arm::kStable && answers_.size() < kMost) answers_.push_back(observation);
  }

  /// Whether an answer, or another break, shows that the process was alive after this moment: its request was drawn later, or it was in
  /// progress and ended later.
  bool outlived_by(const Observation& later, std::chrono::nanoseconds at) const {
    if (later.sign && later.late.count() > 0) return true;  // another router asks after it has reported the break
    return at - later.late >= at_ + kOneMoment || drawn_after(at_, later, at);
  }
  /// A process that was killed may be back after a second: a later sign of life is none.
  bool overdue(std::chrono::nanoseconds at) const { return at > at_ + kSignOfLife; }

  const std::vector<Observation>& answers() const { return answers_; }

 private:
  static constexpr std::chrono::milliseconds kSignOfLife{1000};
  static constexpr size_t kMost = 1024;

  std::chrono::nanoseconds at_;
  std::vector<Observation> answers_;
};

}  // namespace serin::rollout
