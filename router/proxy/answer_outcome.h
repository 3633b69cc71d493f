// answer_outcome.h: Classifies an answer for the judge, and compares two answers to one request.
#pragma once

#include <cstdint>
#include <optional>

#include "router/proxy/outputs.h"
#include "router/rollout/observation.h"
#include "router/rollout/spec.h"
#include "runtime/base/result.h"
#include "runtime/net/buffer.h"
#include "runtime/net/grpc.h"
#include "runtime/net/http.h"
#include "runtime/net/stream.h"

namespace serin::router {

/// An answer's status in the judge's terms.
rollout::Outcome outcome_of(int status);
rollout::Outcome outcome_of(net::GrpcStatus status);
/// The same for a request without an answer.
rollout::Outcome outcome_of(Code failure);
/// The endpoint did not answer at all: refused, reset, closed.
bool is_silence(Code failure);
/// The ending of a request that failed.
rollout::Ending ending_of(const net::Failure& failure);
/// The batch that an answer names as its own.
std::optional<rollout::BatchId> batch_of(const net::Headers& answer);
/// The body with the facts from its headers. Makes room after it for the reader. `call`: a gRPC call. Nothing if it is compressed: it is
/// forwarded like any other, and judged by its status.
std::optional<AnswerBody> answer_body(const net::Headers& headers, net::Buffer& body, bool call);

/// An answer that waits for the other one to the same request; only the relevant headers are kept.
struct Half {
  rollout::Outcome outcome = rollout::Outcome::kOk;
  std::optional<rollout::BatchId> batch;
  std::optional<size_t> json_bytes;
  net::Buffer body;
  rollout::Ending ending = rollout::Ending::kAnswered;
  bool malformed = false;  ///< more came than was announced
  bool call = false;       ///< a gRPC call
  bool encoded = false;    ///< compressed: not read

  void take_head(int status, const net::Headers& headers);
  void take_trailers(const net::Headers& trailers);
  void fail(const net::Failure& failure);
  void clear();  ///< everything but the body
};

/// Compares stable's answer with the canary's. `random` picks the row whose label is compared, so that a request of many rows is one trial,
/// not many correlated ones.
rollout::ShadowPair compare(Half& stable, Half& canary, const rollout::Guard& guard, uint64_t random, const Comparing& how = {});

}  // namespace serin::router
