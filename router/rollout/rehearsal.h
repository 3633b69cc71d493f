// rehearsal.h: a rollout lived through on recorded traffic, by the judge and the machine that would decide the real one, on a clock of its own.
//
//   const Recording recording{...};
//   const Rehearsal healthy = rehearse(spec, recording, {}, /*seed=*/1);
//   const Rehearsal broken = rehearse(spec, recording, {.errors = 0.05}, 1);
//
// Every request of the recording comes again at its time, over and over; whichever version it is drawn to, it goes as it went, and on the canary
// what ails it comes on top. So a canary that nothing ails is just as stable, whatever the traffic looks like. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "router/rollout/rollout.h"

namespace serin::rollout {

struct Recorded {
  std::chrono::nanoseconds at{0};  ///< since the recording began; rises
  Outcome outcome = Outcome::kOk;
  std::chrono::nanoseconds latency{0};
};

struct Recording {
  std::vector<Recorded> requests;      ///< at least one
  std::chrono::nanoseconds length{0};  ///< then it begins again
};

struct Ailment {
  double errors = 0;  ///< this share of the canary's answers fails
  double slower = 1;  ///< its answers take so many times as long
};

struct Rehearsal {
  Phase phase = Phase::kProgressing;  ///< Succeeded, RolledBack, Inconclusive, or where it stood after `most` requests
  std::string cause;
  double seconds = 0;
  uint64_t requests = 0, canary_requests = 0;
  uint64_t canary_failures = 0;  ///< of these; with the shield clients see stable's answer instead
};

/// A manual gate is passed at once.
Rehearsal rehearse(const Spec& spec, const Recording& recording, const Ailment& ailment, uint64_t seed, uint64_t most = 5'000'000);

}  // namespace serin::rollout
