// verdict.cc: from HTTP to the judge's terms. What stands in bodies is read in router/outputs.h.

#include "router/proxy/verdict.h"

#include <charconv>

#include "runtime/protocol/datatype.h"

namespace serin::router {
namespace {

using rollout::Guard;
using rollout::Outcome;

}  // namespace

AnswerBody answer_body(const net::Headers& headers, std::string_view bytes) {
  const std::string_view text = headers.get("inference-header-content-length");
  size_t length = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
  const bool given = !text.empty() && failure == std::errc() && end == text.data() + text.size();
  return {bytes, given ? std::optional(length) : std::nullopt};
}

Outcome outcome_of(int status) {
  if (status >= 500) return Outcome::kError;
  if (status == 401 || status == 403 || status == 429 || status == 499) return Outcome::kNeutral;
  if (status >= 400) return Outcome::kRejected;
  if (status >= 300 || status < 200) return Outcome::kNeutral;
  return Outcome::kOk;
}

Outcome outcome_of(Code failure) { return failure == Code::kDeadlineExceeded ? Outcome::kDeadline : Outcome::kError; }

bool is_silence(Code failure) { return failure == Code::kUnavailable || failure == Code::kIo; }

Outcome classify(const Result<net::Response>& answer, bool check_body) {
  if (!answer) return outcome_of(answer.error().code);
  const Outcome outcome = outcome_of(answer->status);
  const bool failed = outcome == Outcome::kOk && check_body && says_failed(answer_body(answer->headers, answer->body));
  return failed ? Outcome::kError : outcome;
}

std::optional<rollout::BatchId> batch_of(const net::Headers& answer) {
  const auto tag = protocol::parse_batch_tag(answer.get("x-serin-batch"));
  if (!tag) return std::nullopt;
  return rollout::BatchId{tag->boot ^ tag->seq * 0x9e3779b97f4a7c15u, tag->i,
                          tag->n};  // an odd multiplier: no two batches of one start meet
}

rollout::ShadowPair compare(const Result<net::Response>& stable, const Result<net::Response>& canary, const Guard& guard, uint64_t random) {
  rollout::ShadowPair pair;
  pair.stable = classify(stable, true);
  pair.canary = classify(canary, true);
  if (stable) pair.stable_batch = batch_of(stable->headers);
  if (canary) pair.canary_batch = batch_of(canary->headers);
  pair.canary_answered = canary || !is_silence(canary.error().code);
  if (pair.stable != Outcome::kOk || pair.canary != Outcome::kOk || guard.compare == Guard::Compare::kOff) return pair;

  const Comparison comparison =
      compare_answers(answer_body(stable->headers, stable->body), answer_body(canary->headers, canary->body), guard, random);
  pair.comparable = comparison.comparable;
  pair.mismatch = comparison.mismatch;
  pair.difference = comparison.difference;
  return pair;
}

}  // namespace serin::router
