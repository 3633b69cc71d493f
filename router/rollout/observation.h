// observation.h: what the data path tells the judge about one resolved attempt. Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace serin::rollout {

enum class Arm : uint8_t { kStable, kCanary };

/// `x-serin-batch: <boot>-<seq>/<i>/<n>`: the batch an answer rode in. boot_seq identifies the batch, i of n is this answer's place in it.
struct BatchId {
  uint64_t boot_seq = 0;  ///< hash of the boot id combined with the sequence number
  uint32_t i = 0, n = 1;
};

enum class Outcome : uint8_t {
  kOk,        ///< 2xx, well formed
  kError,     ///< 5xx, reset, malformed, NaN/Inf in the outputs: a bad event of `err`
  kRejected,  ///< 4xx except 401, 403, 429, 499: a bad event of `rej`
  kDeadline,  ///< still in flight when its deadline passed: a bad event of `dl`
  kNeutral,   ///< 401, 403, 429, 499, 3xx: says nothing about the version
};

/// One attempt that took part in the random draw. Retries, hedges, forced versions and fallbacks never become observations.
struct Observation {
  Arm arm = Arm::kStable;
  uint64_t epoch = 0;       ///< of the rollout when it was drawn; others are ignored
  uint32_t weight_ppm = 0;  ///< the canary's weight when it was drawn
  Outcome outcome = Outcome::kOk;
  std::chrono::nanoseconds latency{0};  ///< time to the whole answer; meaningful for kOk only
  std::optional<BatchId> batch;         ///< absent: unknown backend, reset, refused connect, deadline
  uint32_t endpoint = 0;                ///< index within the service: the unit where there is no batch
  bool answered = true;                 ///< false: reset or refused connect. Such failures are counted by episode, not by request
};

/// A failure without an answer: nothing came back that could name its batch.
inline bool is_silent_failure(const Observation& observation) {
  return !observation.batch && (!observation.answered || observation.outcome == Outcome::kDeadline);
}

/// A stable request that was mirrored to the canary, both answers in hand.
struct ShadowPair {
  uint64_t epoch = 0;
  Outcome stable = Outcome::kOk, canary = Outcome::kOk;
  bool comparable = false;  ///< both are kOk and both had the named output
  bool mismatch = false;    ///< other label, or values out of tolerance

  // The units of the two answers, as in Observation: a batch that fails is one piece of news here, too.
  std::optional<BatchId> stable_batch, canary_batch;
  uint32_t stable_endpoint = 0, canary_endpoint = 1;
  bool canary_answered = true;  ///< false: reset or refused connect
};

}  // namespace serin::rollout
