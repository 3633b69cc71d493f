// rehearsal.h: Runs a rollout on recorded traffic, with the judge and the machine of a real one, on its own clock.
//
//   const Recording recording{...};
//   const Rehearsal healthy = rehearse(spec, recording, {}, /*seed=*/1);
//   const Rehearsal broken = rehearse(spec, recording, {.errors = 0.05}, 1);
//
// Every request of the recording repeats at its time, again and again. Whichever version it is drawn to, its result is the recorded one; on
// the canary the simulated fault is added. So a canary without a fault behaves exactly like stable, whatever the traffic. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "router/rollout/rollout.h"

namespace serin::rollout {

struct Recorded {
  std::chrono::nanoseconds at{0};  ///< since the start of the recording; rises
  Outcome outcome = Outcome::kOk;
  std::chrono::nanoseconds latency{0};
};

struct Recording {
  std::vector<Recorded> requests;      ///< at least one
  std::chrono::nanoseconds length{0};  ///< then it starts again
  bool known_before = true;            ///< stable gave these answers before the rollout, too; false: it is known from the rollout only
};

struct Ailment {
  double errors = 0;  ///< this share of the canary's answers fails
  double slower = 1;  ///< factor on the time of its answers
  double tail = 0;    ///< this share of its answers takes nine times as long: with 3 %, its p99 about three times
  // Of processes that are assumed: 512 MiB that vary by 0.1 %, 2 ms of CPU for an answer, that varies by a tenth.
  double leak = 0;  ///< this share of its memory more, each minute
  double cpu = 1;   ///< factor on the CPU time of its answers
};

struct Rehearsal {
  /// Succeeded, RolledBack, Inconclusive, or the phase reached after `most` requests.
  Phase phase = Phase::kProgressing;
  std::string cause;
  double seconds = 0;
  uint64_t requests = 0, canary_requests = 0;
  uint64_t canary_failures = 0;  ///< of these; with the shield clients get stable's answer instead
};

/// A manual gate is passed at once.
Rehearsal rehearse(const Spec& spec, const Recording& recording, const Ailment& ailment, uint64_t seed, uint64_t most = 5'000'000);

}  // namespace serin::rollout
