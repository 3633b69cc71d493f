// outputs.h: Reads the bodies of answers, one alone or two compared.
//
// Pure: bytes in, facts for the judge out. Allocates nothing once its thread has read a few.
#pragma once

#include <cstdint>
#include <optional>

#include "router/proxy/likeness.h"
#include "router/rollout/observation.h"
#include "router/rollout/spec.h"
#include "runtime/protocol/answers/answers.h"

namespace serin::router {

using protocol::AnswerBody;

struct Look {
  bool failed = false;  ///< it reports that the inference failed, or contains NaN or an infinity: an error whatever the status
  rollout::Output output;
};
/// Reads from a good answer the facts that the guard requires. weight_ppm: Draw::look_weight_ppm. `random` picks the row whose label is
/// read, so that a request of many rows is one trial. An answer over 64 KiB has no form. All answers of unknown protocols have the same
/// form.
Look look_at(const AnswerBody& answer, const rollout::Guard& guard, uint32_t weight_ppm, uint64_t random);
/// Whether the body reports a failed inference. Cheaper than a look, and sufficient if outputs are not judged.
bool says_failed(const AnswerBody& answer);

struct Comparison {
  bool stable_failed = false, canary_failed = false;  ///< as Look::failed; then nothing is compared
  bool comparable = false, mismatch = false;
  Likeness likeness;  ///< of the compared row
  std::optional<rollout::Difference> difference;
};
struct Comparing {
  bool numbers_only = false;     ///< texts and unknown bytes may differ with every answer, and the user has not asked for a comparison
  UsualSpread* usual = nullptr;  ///< of the service's answers; learns
};
/// Compares two answers with good statuses to one request: tensor by tensor if the protocol is known, otherwise byte by byte.
Comparison compare_answers(const AnswerBody& stable, const AnswerBody& canary, const rollout::Guard& guard, uint64_t random,
                           const Comparing& how = {});

}  // namespace serin::router
