// outputs.h: what the bodies of answers say: one alone, and two beside each other. Pure: bytes in, facts for the judge out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "router/rollout/observation.h"
#include "router/rollout/spec.h"

namespace serin::router {

/// The body of an answer with status 2xx.
struct AnswerBody {
  std::string_view bytes;
  std::optional<size_t> json_bytes;  ///< the header Inference-Header-Content-Length
};

struct Look {
  bool failed = false;  ///< it says that the inference failed, or holds NaN or an infinity: an error whatever the status
  rollout::Output output;
};
/// weight_ppm: Draw::look_weight_ppm. `random` picks the row whose label is read, so that a request of many rows is one trial. An answer of no
/// protocol known here has no form, nor has one of more than 64 KiB.
Look look_at(const AnswerBody& answer, const rollout::Guard& guard, uint32_t weight_ppm, uint64_t random);
/// Whether the body says that the inference failed; cheaper than a look, and all that is asked where outputs are not judged.
bool says_failed(const AnswerBody& answer);

struct Comparison {
  bool comparable = false, mismatch = false;
  std::optional<rollout::Difference> difference;
};
/// Two good answers to one request: tensor by tensor where the protocol is known, byte by byte where it is not.
Comparison compare_answers(const AnswerBody& stable, const AnswerBody& canary, const rollout::Guard& guard, uint64_t random);

}  // namespace serin::router
