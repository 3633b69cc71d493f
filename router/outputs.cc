#include "router/outputs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "router/rollout/hash.h"
#include "runtime/protocol/answers.h"

namespace serin::router {
namespace {

using protocol::OutputValues;
using rollout::Guard;
using Outputs = std::vector<OutputValues>;

constexpr size_t kLargestLook = size_t{64} << 10;  // reading a megabyte of numbers takes longer than passing it on

/// The words that a body with something wrong in it must hold, JSON or binary: nearly always this search is the end of it.
bool may_say_failed(const AnswerBody& answer) {
  const auto holds = [&](std::string_view word) { return answer.bytes.find(word) != std::string_view::npos; };
  return answer.json_bytes || holds("NaN") || holds("Infinity") || holds("\"err_no\"");
}

Result<Outputs> decode(const AnswerBody& answer) { return protocol::decode_answer(std::string(answer.bytes), answer.json_bytes); }

bool failed(const Result<Outputs>& outputs) {
  if (!outputs) return outputs.error().code == Code::kInternal;  // err_no of Paddle; an unknown protocol says nothing
  return !std::ranges::all_of(*outputs, &OutputValues::finite);
}

const OutputValues* find_output(const Outputs& outputs, const std::string& name) {
  for (const OutputValues& output : outputs)
    if (name.empty() || output.name == name) return &output;
  return nullptr;
}

/// Names, datatypes, ranks and last dimensions, whatever the batch.
uint64_t form_of(const Outputs& outputs) {
  uint64_t form = 1;
  for (const OutputValues& output : outputs) {
    form = rollout::hash_text(output.name, form);
    form = rollout::hash_text(output.datatype, form);
    form = rollout::mix(form ^ output.shape.rank() << 32 ^ (output.shape.rank() < 2 ? 0 : static_cast<uint64_t>(output.shape.back())));
  }
  return form == 0 ? 1 : form;
}

/// Scores along the last axis; without one every element is its own row.
struct Row {
  std::vector<double>::const_iterator best;
  uint32_t label = 0;
};
size_t width_of(const OutputValues& output) {
  return output.shape.is_scalar() || output.shape.back() < 1 ? 1 : static_cast<size_t>(output.shape.back());
}
Row row_of(const OutputValues& output, uint64_t random) {
  const size_t width = width_of(output), rows = output.values.size() / width;
  const auto first = output.values.begin() + static_cast<std::ptrdiff_t>(random % rows * width);
  const auto best = std::max_element(first, first + static_cast<std::ptrdiff_t>(width));
  return {best, static_cast<uint32_t>(best - first)};
}

bool values_differ(const OutputValues& stable, const OutputValues& canary, const Guard& guard) {
  for (size_t i = 0; i < stable.values.size(); ++i) {
    const double y = stable.values[i], difference = std::abs(canary.values[i] - y);
    if (!(difference <= guard.atol + guard.rtol * std::abs(y))) return true;  // NaN differs
  }
  return false;
}

rollout::Difference measure(const OutputValues& stable, const OutputValues& canary, uint64_t random) {
  rollout::Difference difference;
  for (size_t i = 0; i < stable.values.size(); ++i) {
    const double y = stable.values[i], distance = std::abs(canary.values[i] - y);
    difference.absolute = std::max(difference.absolute, distance);
    if (y != 0) difference.relative = std::max(difference.relative, distance / std::abs(y));
  }
  const Row theirs = row_of(stable, random), ours = row_of(canary, random);
  difference.label = theirs.label != ours.label;
  difference.score = *ours.best - *theirs.best;
  return difference;
}

}  // namespace

bool says_failed(const AnswerBody& answer) { return may_say_failed(answer) && failed(decode(answer)); }

Look look_at(const AnswerBody& answer, const Guard& guard, uint32_t weight_ppm, uint64_t random) {
  Look look{.output = {.weight_ppm = weight_ppm}};
  if (answer.bytes.size() > kLargestLook) {
    look.failed = !answer.json_bytes && says_failed(answer);
    look.output.finite = !look.failed;
    return look;
  }
  const auto outputs = decode(answer);
  look.failed = failed(outputs);
  look.output.finite = !look.failed;
  if (look.failed || !outputs) return look;
  look.output.form = form_of(*outputs);
  const OutputValues* output = find_output(*outputs, guard.output);
  if (output == nullptr || output->values.empty()) return look;
  const Row row = row_of(*output, random);
  look.output.label = row.label;
  look.output.score = *row.best;
  return look;
}

Comparison compare_answers(const AnswerBody& stable, const AnswerBody& canary, const Guard& guard, uint64_t random) {
  const auto expected = decode(stable), got = decode(canary);
  if (!expected) return {.comparable = true, .mismatch = stable.bytes != canary.bytes};  // no protocol of ours: the same bytes, or not
  const OutputValues* theirs = find_output(*expected, guard.output);
  if (theirs == nullptr || theirs->values.empty()) return {};
  const OutputValues* ours = got ? find_output(*got, guard.output.empty() ? theirs->name : guard.output) : nullptr;
  if (ours == nullptr || ours->shape != theirs->shape || ours->values.size() != theirs->values.size())
    return {.comparable = true, .mismatch = true};
  const rollout::Difference difference = measure(*theirs, *ours, random);
  const bool differs = guard.compare == Guard::Compare::kLabel ? difference.label : values_differ(*theirs, *ours, guard);
  return {.comparable = true, .mismatch = differs, .difference = difference};
}

}  // namespace serin::router
