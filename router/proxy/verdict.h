// verdict.h: what an answer says about the version that gave it, and whether two answers to one request agree.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "router/outputs.h"
#include "router/rollout/observation.h"
#include "router/rollout/spec.h"
#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::router {

/// What an answer's status says in the judge's terms.
rollout::Outcome outcome_of(int status);
/// The same of a request that got no answer.
rollout::Outcome outcome_of(Code failure);
/// The endpoint said nothing at all: refused, reset, closed.
bool is_silence(Code failure);
/// Errors of transport and statuses of HTTP in the judge's terms. `check_body`: an answer with NaN or infinities counts as an error.
rollout::Outcome classify(const Result<net::Response>& answer, bool check_body);

/// The body with what its headers say about it.
AnswerBody answer_body(const net::Headers& headers, std::string_view bytes);
/// The batch that an answer says it rode in.
std::optional<rollout::BatchId> batch_of(const net::Headers& answer);

/// Stable's answer beside the canary's. `random` picks the row whose label is compared, so that a request of many rows is one trial, not many
/// correlated ones.
rollout::ShadowPair compare(const Result<net::Response>& stable, const Result<net::Response>& canary, const rollout::Guard& guard,
                            uint64_t random);

}  // namespace serin::router
