// observation.h: The data path's report to the judge about one finished attempt. Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace serin::rollout {

enum class Arm : uint8_t { kStable, kCanary };
inline constexpr std::string_view kArmNames[] = {"stable", "canary"};
constexpr std::span<const std::string_view> words_of(Arm) { return kArmNames; }

/// `x-serin-batch: <boot>-<seq>/<i>/<n>`: the batch of an answer. boot_seq identifies the batch; i of n is this answer's place in it.
struct BatchId {
  uint64_t boot_seq = 0;  ///< hash of the boot id combined with the sequence number
  uint32_t i = 0, n = 1;
  uint64_t boot = 0;  ///< hash of the boot id: of one run of the process; 0: unknown
};

enum class Outcome : uint8_t {
  kOk,        ///< 2xx, well formed
  kError,     ///< 5xx, cut off, malformed, no connection, NaN/Inf in the outputs: a bad event of `err`
  kRejected,  ///< 3xx, and 4xx except 429 and 499: a bad event of `rej`. A client that is to blame meets both versions
  kDeadline,  ///< still in flight when its deadline passed: a bad event of `dl`
  kNeutral,   ///< 429, 499: no information about the version
};

inline bool is_failure(Outcome outcome) {
  return outcome == Outcome::kError || outcome == Outcome::kRejected || outcome == Outcome::kDeadline;
}

/// The class of a request in each slice of the specification (Guard::slices); empty: it has none. Null: no slices.
using Classes = std::shared_ptr<const std::vector<std::string>>;

/// How an attempt ended, whatever its outcome.
enum class Ending : uint8_t {
  kAnswered,  ///< by the version: with an answer, with invalid bytes, or with the reset of one stream; or the deadline passed
  kBroken,    ///< the connection stood, and broke before the end of the answer
  kRefused,   ///< there was no connection
};

/// The content of a good answer's body, if it was inspected: every answer of the canary, a random part of stable's (draw.h).
struct Output {
  uint32_t weight_ppm = 0;        ///< the canary's share of the inspected answers
  bool finite = true;             ///< false: NaN or an infinity; the outcome is then kError
  uint64_t form = 0;              ///< digest of names, datatypes, ranks and last dimensions; 0: not read
  std::optional<uint32_t> label;  ///< of a random row: the index of its highest score
  double score = 0;               ///< that score; meaningful if there is a label
};

/// One attempt on a version. Retries, the stable half of a hedge, forced versions and fallbacks (a dead canary, the exposure cap) never
/// become observations. Neither does any attempt while one of the arms could not have been drawn. A hedged canary attempt is not stopped:
/// it is observed when it answers or when its deadline passes, whichever attempt answered the client.
struct Observation {
  Arm arm = Arm::kStable;
  uint64_t epoch = 0;       ///< of the rollout at the draw; others are ignored
  uint32_t weight_ppm = 0;  ///< the canary's share at the draw (Draw::weight_ppm)
  Outcome outcome = Outcome::kOk;
  std::chrono::nanoseconds latency{0};  ///< time to the whole answer if kOk; from the draw to the break if kBroken
  std::optional<BatchId> batch;         ///< absent: unknown backend, broken answer, refused connect, deadline
  uint32_t endpoint = 0;                ///< index within the service: the unit if there is no batch
  Ending ending = Ending::kAnswered;    ///< representative.cc: the unit of those that were not answered
  bool drawn = true;             ///< false: sent to the canary by its header (Spec::cohort), so that it cannot be compared with stable
  std::optional<uint64_t> key;   ///< Draw::key if requests stick: then the key is the unit
  std::optional<Output> output;  ///< if the body was inspected
  bool sign = false;             ///< no request: whether the endpoint lives, asked after a broken answer. kNeutral
  Classes classes;
  std::chrono::milliseconds late{0};  ///< it may be that much older than its report, if another router reported it
};

/// A failure without an answer: no reply that could name its batch.
inline bool is_silent_failure(const Observation& observation) {
  return !observation.batch && (observation.ending != Ending::kAnswered || observation.outcome == Outcome::kDeadline);
}

/// The difference of two answers to one request, for display; the judge uses ShadowPair::mismatch.
struct Difference {
  bool label = false;                           ///< a different label in the compared row
  double absolute = 0;                          ///< largest |canary - stable|
  double relative = 0;                          ///< largest |canary - stable| / |stable|, if stable's is not 0
  double score = 0;                             ///< canary's highest score minus stable's, in that row
  uint32_t stable_label = 0, canary_label = 0;  ///< in that row: the index of the highest score
  double stable_score = 0;                      ///< that score
};

/// A stable request that was mirrored to the canary, with both answers.
struct ShadowPair {
  uint64_t epoch = 0;
  Outcome stable = Outcome::kOk, canary = Outcome::kOk;
  bool comparable = false;  ///< both are kOk and stable's could be read
  /// By the chosen comparison: another label, values out of tolerance, or other bytes if the protocol is unknown.
  bool mismatch = false;
  bool spare = false;                    ///< copied in the canary's spare time (`shadow: auto`), and not because the user asked for it
  std::optional<Difference> difference;  ///< if both had the named output in the same shape
  bool far = false;                      ///< another label by a wide margin, or no such output: no rounding explains it
  /// Whether the two rows are numerically the same; nothing: they could be so by chance, or are no numbers (proxy/likeness.h).
  std::optional<bool> same;

  // The units of the two answers, as in Observation: a failing batch is one unit of evidence here, too.
  std::optional<BatchId> stable_batch, canary_batch;
  uint32_t stable_endpoint = 0, canary_endpoint = 1;
  Ending canary_ending = Ending::kAnswered;
  Classes classes;
};

}  // namespace serin::rollout
