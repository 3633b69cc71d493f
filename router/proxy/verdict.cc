// verdict.cc: outcomes and the tensor-aware comparison of shadow answers.

#include "router/proxy/verdict.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/protocol/datatype.h"
#include "runtime/protocol/oip_rest.h"

namespace serin::router {
namespace {

using protocol::OutputValues;
using rollout::Guard;
using rollout::Outcome;

bool may_hold_non_finite(std::string_view body) {
  return body.find("NaN") != std::string_view::npos || body.find("Infinity") != std::string_view::npos;
}

// The search above costs nothing and is nearly always the end of it; only a hit is parsed, because the word may stand in a string.
bool is_finite(const net::Response& answer) {
  if (!may_hold_non_finite(answer.body)) return true;
  const auto outputs = protocol::decode_infer_response(answer.body);
  return !outputs || std::ranges::all_of(*outputs, &OutputValues::finite);
}

const OutputValues* find_output(const std::vector<OutputValues>& outputs, const std::string& name) {
  for (const OutputValues& output : outputs)
    if (name.empty() || output.name == name) return &output;
  return nullptr;
}

size_t label(const OutputValues& output, size_t row, size_t width) {
  const auto first = output.values.begin() + static_cast<std::ptrdiff_t>(row * width);
  return static_cast<size_t>(std::max_element(first, first + static_cast<std::ptrdiff_t>(width)) - first);
}

bool labels_differ(const OutputValues& a, const OutputValues& b, uint64_t random) {
  const auto width = static_cast<size_t>(a.shape.is_scalar() ? 1 : a.shape.back());
  const size_t rows = a.values.size() / width;
  const size_t row = random % rows;
  return label(a, row, width) != label(b, row, width);
}

bool values_differ(const OutputValues& stable, const OutputValues& canary, const Guard& guard) {
  for (size_t i = 0; i < stable.values.size(); ++i) {
    const double y = stable.values[i], difference = std::abs(canary.values[i] - y);
    if (!(difference <= guard.atol + guard.rtol * std::abs(y))) return true;  // NaN differs
  }
  return false;
}

}  // namespace

Outcome classify(const Result<net::Response>& answer, bool check_body) {
  if (!answer) return answer.error().code == Code::kDeadlineExceeded ? Outcome::kDeadline : Outcome::kError;
  const int status = answer->status;
  if (status >= 500) return Outcome::kError;
  if (status == 401 || status == 403 || status == 429 || status == 499) return Outcome::kNeutral;
  if (status >= 400) return Outcome::kRejected;
  if (status >= 300 || status < 200) return Outcome::kNeutral;
  return check_body && !is_finite(*answer) ? Outcome::kError : Outcome::kOk;
}

std::optional<rollout::BatchId> batch_of(const net::Response& answer) {
  const auto tag = protocol::parse_batch_tag(answer.headers.get("x-serin-batch"));
  if (!tag) return std::nullopt;
  return rollout::BatchId{tag->boot ^ tag->seq * 0x9e3779b97f4a7c15u, tag->i,
                          tag->n};  // an odd multiplier: no two batches of one start meet
}

rollout::ShadowPair compare(const Result<net::Response>& stable, const Result<net::Response>& canary, const Guard& guard, uint64_t random) {
  rollout::ShadowPair pair;
  pair.stable = classify(stable, true);
  pair.canary = classify(canary, true);
  if (stable) pair.stable_batch = batch_of(*stable);
  if (canary) pair.canary_batch = batch_of(*canary);
  pair.canary_answered = canary || canary.error().code != Code::kUnavailable;
  if (pair.stable != Outcome::kOk || pair.canary != Outcome::kOk || guard.compare == Guard::Compare::kOff) return pair;

  const auto a = protocol::decode_infer_response(stable->body);
  const auto b = protocol::decode_infer_response(canary->body);
  if (!a) return pair;  // stable's own answer is not ours to read: nothing can be said
  const OutputValues* expected = find_output(*a, guard.output);
  if (expected == nullptr || expected->values.empty()) return pair;
  const OutputValues* got = b ? find_output(*b, guard.output.empty() ? expected->name : guard.output) : nullptr;
  pair.comparable = true;
  if (got == nullptr || got->shape != expected->shape || got->values.size() != expected->values.size())
    pair.mismatch = true;
  else
    pair.mismatch =
        guard.compare == Guard::Compare::kLabel ? labels_differ(*expected, *got, random) : values_differ(*expected, *got, guard);
  return pair;
}

}  // namespace serin::router
