// answer_outcome.cc: from HTTP to the judge's terms. What stands in bodies is read in router/proxy/outputs.h.

#include "router/proxy/answer_outcome.h"

#include "runtime/base/number.h"
#include "runtime/protocol/oip/oip_rest.h"
#include "runtime/protocol/tensor/datatype.h"

namespace serin::router {
namespace {

using rollout::Guard;
using rollout::Outcome;

/// The header Inference-Header-Content-Length: where binary tensors begin.
std::optional<size_t> json_bytes_of(const net::Headers& headers) { return parse_number<size_t>(headers.get(protocol::kJsonLength)); }

bool is_encoded(const net::Headers& headers) {
  const std::string_view encoding = headers.get("content-encoding");
  return !encoding.empty() && !net::equal_ignoring_case(encoding, "identity");
}

std::optional<AnswerBody> readable(net::Buffer& body, std::optional<size_t> json_bytes, bool call, bool encoded) {
  const bool compressed = call && !body.empty() && body.data().front() != 0;
  if (encoded || compressed) return std::nullopt;
  body.room(protocol::kPadding);  // first: it may move the bytes
  return AnswerBody{.bytes = body.data(), .json_bytes = json_bytes, .padded = true, .call = call};
}

std::optional<AnswerBody> readable(Half& half) { return readable(half.body, half.json_bytes, half.call, half.encoded); }

/// A good status may be no good answer.
void look_again(Outcome& outcome, const std::optional<AnswerBody>& body) {
  if (outcome == Outcome::kOk && body && says_failed(*body)) outcome = Outcome::kError;
}

}  // namespace

Outcome outcome_of(int status) {
  if (status >= 500) return Outcome::kError;
  if (status == 429 || status == 499) return Outcome::kNeutral;
  return status >= 200 && status < 300 ? Outcome::kOk : Outcome::kRejected;
}

/// As that of HTTP which means the same; but a call knows its deadline on both sides, and whoever is first says that it has passed.
Outcome outcome_of(net::GrpcStatus status) {
  return status == net::GrpcStatus::kDeadlineExceeded ? Outcome::kDeadline : outcome_of(net::http_status_of(status));
}

Outcome outcome_of(Code failure) { return failure == Code::kDeadlineExceeded ? Outcome::kDeadline : Outcome::kError; }

bool is_silence(Code failure) { return failure == Code::kUnavailable || failure == Code::kIo; }

rollout::Ending ending_of(const net::Failure& failure) {
  if (failure.alone || !is_silence(failure.code)) return rollout::Ending::kAnswered;
  return failure.code == Code::kIo ? rollout::Ending::kBroken : rollout::Ending::kRefused;
}

std::optional<rollout::BatchId> batch_of(const net::Headers& answer) {
  const auto tag = protocol::parse_batch_tag(answer.get("x-serin-batch"));
  if (!tag) return std::nullopt;
  return rollout::BatchId{tag->boot ^ tag->seq * 0x9e3779b97f4a7c15u, tag->i, tag->n,
                          tag->boot};  // an odd multiplier: no two batches of one start meet
}

std::optional<AnswerBody> answer_body(const net::Headers& headers, net::Buffer& body, bool call) {
  return readable(body, json_bytes_of(headers), call, is_encoded(headers));
}

void Half::take_head(int status, const net::Headers& headers) {
  outcome = call ? outcome_of(net::grpc_status_in_answer(status, headers)) : outcome_of(status);
  batch = batch_of(headers);
  json_bytes = json_bytes_of(headers);
  encoded = is_encoded(headers);
}

/// What they say counts, whatever the head said.
void Half::take_trailers(const net::Headers& trailers) {
  if (const auto said = net::grpc_status_in(trailers); said && call) outcome = outcome_of(*said);
  if (!batch) batch = batch_of(trailers);
}

void Half::fail(const net::Failure& failure) {
  outcome = outcome_of(failure.code);
  ending = ending_of(failure);
  batch.reset();
}

void Half::clear() {
  outcome = Outcome::kOk;
  batch.reset();
  json_bytes.reset();
  ending = rollout::Ending::kAnswered;
  malformed = call = encoded = false;
}

rollout::ShadowPair compare(Half& stable, Half& canary, const Guard& guard, uint64_t random, const Comparing& how) {
  rollout::ShadowPair pair;
  pair.stable = stable.outcome;
  pair.canary = canary.malformed && canary.outcome == Outcome::kOk ? Outcome::kError : canary.outcome;
  pair.stable_batch = stable.batch;
  pair.canary_batch = canary.batch;
  pair.canary_ending = canary.ending;
  const auto expected = readable(stable), got = readable(canary);
  if (pair.stable != Outcome::kOk || pair.canary != Outcome::kOk || !expected || !got) {  // nothing to compare
    look_again(pair.stable, expected);
    look_again(pair.canary, got);
    return pair;
  }
  const Comparison comparison = compare_answers(*expected, *got, guard, random, how);
  if (comparison.stable_failed) pair.stable = Outcome::kError;
  if (comparison.canary_failed) pair.canary = Outcome::kError;
  pair.comparable = comparison.comparable;
  pair.mismatch = comparison.mismatch;
  pair.difference = comparison.difference;
  pair.far = comparison.likeness.far;
  pair.same = comparison.likeness.same;
  return pair;
}

}  // namespace serin::router
