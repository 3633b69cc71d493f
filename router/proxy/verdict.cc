// verdict.cc: from HTTP to the judge's terms. What stands in bodies is read in router/outputs.h.

#include "router/proxy/verdict.h"

#include <charconv>

#include "runtime/protocol/datatype.h"

namespace serin::router {
namespace {

using rollout::Guard;
using rollout::Outcome;

/// The header Inference-Header-Content-Length: where binary tensors begin.
std::optional<size_t> json_bytes_of(const net::Headers& headers) {
  const std::string_view text = headers.get("inference-header-content-length");
  size_t length = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
  const bool given = !text.empty() && failure == std::errc() && end == text.data() + text.size();
  return given ? std::optional(length) : std::nullopt;
}

AnswerBody readable(net::Buffer& body, std::optional<size_t> json_bytes) {
  body.room(protocol::kPadding);  // first: it may move the bytes
  return {.bytes = body.data(), .json_bytes = json_bytes, .padded = true};
}

}  // namespace

Outcome outcome_of(int status) {
  if (status >= 500) return Outcome::kError;
  if (status == 401 || status == 403 || status == 429 || status == 499) return Outcome::kNeutral;
  if (status >= 400) return Outcome::kRejected;
  if (status >= 300 || status < 200) return Outcome::kNeutral;
  return Outcome::kOk;
}

/// As that of HTTP which means the same; but a call knows its deadline on both sides, and whoever is first says that it has passed.
Outcome outcome_of(net::GrpcStatus status) {
  return status == net::GrpcStatus::kDeadlineExceeded ? Outcome::kDeadline : outcome_of(net::http_status_of(status));
}

Outcome outcome_of(Code failure) { return failure == Code::kDeadlineExceeded ? Outcome::kDeadline : Outcome::kError; }

bool is_silence(Code failure) { return failure == Code::kUnavailable || failure == Code::kIo; }

std::optional<rollout::BatchId> batch_of(const net::Headers& answer) {
  const auto tag = protocol::parse_batch_tag(answer.get("x-serin-batch"));
  if (!tag) return std::nullopt;
  return rollout::BatchId{tag->boot ^ tag->seq * 0x9e3779b97f4a7c15u, tag->i,
                          tag->n};  // an odd multiplier: no two batches of one start meet
}

AnswerBody answer_body(const net::Headers& headers, net::Buffer& body) { return readable(body, json_bytes_of(headers)); }

void Half::take_head(int status, const net::Headers& headers) {
  outcome = outcome_of(status);
  batch = batch_of(headers);
  json_bytes = json_bytes_of(headers);
}

void Half::fail(Code code) {
  outcome = outcome_of(code);
  answered = !is_silence(code);
  batch.reset();
}

void Half::clear() {
  outcome = Outcome::kOk;
  batch.reset();
  json_bytes.reset();
  answered = true;
}

rollout::ShadowPair compare(Half& stable, Half& canary, const Guard& guard, uint64_t random) {
  rollout::ShadowPair pair;
  pair.stable = stable.outcome;
  pair.canary = canary.outcome;
  pair.stable_batch = stable.batch;
  pair.canary_batch = canary.batch;
  pair.canary_answered = canary.answered;
  const AnswerBody expected = readable(stable.body, stable.json_bytes), got = readable(canary.body, canary.json_bytes);
  if (pair.stable != Outcome::kOk || pair.canary != Outcome::kOk) {  // nothing to compare, but a good status may be no good answer
    if (pair.stable == Outcome::kOk && says_failed(expected)) pair.stable = Outcome::kError;
    if (pair.canary == Outcome::kOk && says_failed(got)) pair.canary = Outcome::kError;
    return pair;
  }
  const Comparison comparison = compare_answers(expected, got, guard, random);
  if (comparison.stable_failed) pair.stable = Outcome::kError;
  if (comparison.canary_failed) pair.canary = Outcome::kError;
  pair.comparable = comparison.comparable;
  pair.mismatch = comparison.mismatch;
  pair.difference = comparison.difference;
  return pair;
}

}  // namespace serin::router
