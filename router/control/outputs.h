// outputs.h: what the bodies of answers say: one alone, and two beside each other. Pure: bytes in, facts for the judge out. Allocates nothing once its
// thread has read a few.
#pragma once

#include <cstdint>
#include <optional>

#include "router/rollout/observation.h"
#include "router/rollout/spec.h"
#include "runtime/protocol/answers/answers.h"

namespace serin::router {

using protocol::AnswerBody;

struct Look {
  bool failed = false;  ///< it says that the inference failed, or holds NaN or an infinity: an error whatever the status
  rollout::Output output;
};
/// Reads of a good answer what the guard asks for. weight_ppm: Draw::look_weight_ppm. `random` picks the row whose label is read, so that a request of
/// many rows is one trial. An answer of more than 64 KiB has no form; all of no protocol known here have the same.
Look look_at(const AnswerBody& answer, const rollout::Guard& guard, uint32_t weight_ppm, uint64_t random);
/// Whether the body says that the inference failed; cheaper than a look, and all that is asked where outputs are not judged.
bool says_failed(const AnswerBody& answer);

struct Comparison {
  bool stable_failed = false, canary_failed = false;  ///< as Look::failed; then nothing is compared
  bool comparable = false, mismatch = false;
  std::optional<rollout::Difference> difference;
};
/// Two answers with good statuses to one request: tensor by tensor where the protocol is known, byte by byte where it is not.
Comparison compare_answers(const AnswerBody& stable, const AnswerBody& canary, const rollout::Guard& guard, uint64_t random);

}  // namespace serin::router
