#include "router/proxy/outputs.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/stable_hash.h"

namespace serin::router {
namespace {

using protocol::AnswerOutput;
using protocol::AnswerReader;
using protocol::Reading;
using protocol::Wanted;
using rollout::Guard;

constexpr size_t kLargestLook = size_t{64} << 10;  // reading a megabyte of numbers takes longer than passing it on
constexpr uint64_t kForeignForm = 1;               // of no protocol known here: as good as any, where stable has it, too

/// Each thread's own: they keep their memory from answer to answer.
AnswerReader& reader() {
  thread_local AnswerReader mine;
  return mine;
}
AnswerReader& second_reader() {
  thread_local AnswerReader mine;
  return mine;
}

/// The words that a body with something wrong in it must hold, if it is JSON: nearly always this search is the end of it.
bool may_say_failed(const AnswerBody& answer) {
  const auto holds = [&](std::string_view word) { return answer.bytes.find(word) != std::string_view::npos; };
  return answer.binary() || holds("NaN") || holds("Infinity") || holds("\"err_no\"");
}

/// Names, datatypes, ranks and last dimensions, whatever the batch.
uint64_t form_of(std::span<const AnswerOutput> outputs) {
  uint64_t form = 0;
  for (const AnswerOutput& output : outputs) {
    form = hash_text(output.name, form);
    form = hash_text(output.datatype, form);
    form = mix(form ^ output.shape.rank() << 32 ^ (output.shape.rank() < 2 ? 0 : static_cast<uint64_t>(output.shape.back())));
  }
  return std::max(form, kForeignForm + 1);  // 0 says that nothing was read
}

/// The highest of a row of scores.
struct Best {
  double score = 0;
  uint32_t label = 0;
};
Best best_of(std::span<const double> row) {
  const auto best = std::ranges::max_element(row);
  return {*best, static_cast<uint32_t>(best - row.begin())};
}
std::span<const double> row_of(const AnswerOutput& output, uint64_t random) {
  const size_t width = protocol::row_width(output.shape);
  return output.values.subspan(random % (output.values.size() / width) * width, width);
}

bool values_differ(const AnswerOutput& stable, const AnswerOutput& canary, const Guard& guard) {
  for (size_t i = 0; i < stable.values.size(); ++i) {
    const double y = stable.values[i], difference = std::abs(canary.values[i] - y);
    if (!(difference <= guard.atol + guard.rtol * std::abs(y))) return true;  // NaN differs
  }
  return false;
}

rollout::Difference measure(const AnswerOutput& stable, const AnswerOutput& canary, uint64_t random) {
  rollout::Difference difference;
  for (size_t i = 0; i < stable.values.size(); ++i) {
    const double y = stable.values[i], distance = std::abs(canary.values[i] - y);
    difference.absolute = std::max(difference.absolute, distance);
    if (y != 0) difference.relative = std::max(difference.relative, distance / std::abs(y));
  }
  const Best theirs = best_of(row_of(stable, random)), ours = best_of(row_of(canary, random));
  difference.label = theirs.label != ours.label;
  difference.score = ours.score - theirs.score;
  difference.stable_label = theirs.label;
  difference.canary_label = ours.label;
  difference.stable_score = theirs.score;
  return difference;
}

/// Whether only the numbers of rows differ: a detector that finds a box more, at its threshold, is the same model.
bool has_other_rows(const AnswerOutput& stable, const AnswerOutput& canary) {
  return stable.shape.rank() == canary.shape.rank() && protocol::row_width(stable.shape) == protocol::row_width(canary.shape);
}

/// Whether the canary's row is another row of stable's, within a hundredth: rows that nearly tie may change places.
bool is_another_row(const AnswerOutput& stable, std::span<const double> canary) {
  const auto resembles = [&](std::span<const double> row) {
    return std::ranges::equal(row, canary, [](double a, double b) { return std::abs(a - b) <= 0.01 * std::max(std::abs(a), std::abs(b)); });
  };
  for (size_t at = 0; at < stable.values.size(); at += canary.size())
    if (resembles(stable.values.subspan(at, canary.size()))) return true;
  return false;
}

/// The same output of both, the canary's null where it has none.
Comparison compare_outputs(const AnswerOutput& stable, const AnswerOutput* canary, const Guard& guard, uint64_t random,
                           const Comparing& how) {
  if (stable.values.empty() && (stable.texts == 0 || how.numbers_only)) return {};
  Comparison comparison{.comparable = true, .mismatch = true, .likeness = {.far = true}};
  if (canary == nullptr || canary->shape != stable.shape || canary->values.size() != stable.values.size()) {
    if (canary != nullptr && has_other_rows(stable, *canary)) comparison.likeness.far = false;
    return comparison;
  }
  comparison.mismatch = canary->texts != stable.texts;
  if (stable.values.empty()) {
    comparison.likeness.far = false;  // texts: nobody knows how far apart they are
    return comparison;
  }
  comparison.difference = measure(stable, *canary, random);
  comparison.likeness = likeness_of(row_of(stable, random), row_of(*canary, random), how.usual ? how.usual->value() : 0);
  if (how.usual) how.usual->learn(comparison.likeness.spread);
  if (comparison.likeness.far) comparison.likeness.far = !is_another_row(stable, row_of(*canary, random));
  comparison.mismatch |= guard.compare == Guard::Compare::kLabel ? comparison.difference->label : values_differ(stable, *canary, guard);
  return comparison;
}

}  // namespace

bool says_failed(const AnswerBody& answer) {
  return may_say_failed(answer) && reader().read(answer, {.values = Wanted::Values::kNone}) == Reading::kFailed;
}

Look look_at(const AnswerBody& answer, const Guard& guard, uint32_t weight_ppm, uint64_t random) {
  Look look{.output = {.weight_ppm = weight_ppm}};
  if (guard.compare == Guard::Compare::kOff || answer.bytes.size() > kLargestLook) {
    const bool short_enough = !answer.binary() || answer.bytes.size() <= kLargestLook;
    look.failed = short_enough && says_failed(answer);
    look.output.finite = !look.failed;
    return look;
  }
  const auto values = guard.drift > 0 ? Wanted::Values::kRow : Wanted::Values::kNone;
  const Reading reading = reader().read(answer, {.output = guard.output, .values = values, .random = random});
  look.failed = reading == Reading::kFailed;
  look.output.finite = !look.failed;
  if (reading == Reading::kForeign) look.output.form = kForeignForm;
  if (reading != Reading::kOutputs) return look;
  look.output.form = form_of(reader().outputs());
  const AnswerOutput* output = reader().wanted();
  if (output == nullptr || output->values.empty()) return look;
  const Best best = best_of(output->values);
  look.output.label = best.label;
  look.output.score = best.score;
  return look;
}

Comparison compare_answers(const AnswerBody& stable, const AnswerBody& canary, const Guard& guard, uint64_t random, const Comparing& how) {
  if (guard.compare == Guard::Compare::kOff) return {.stable_failed = says_failed(stable), .canary_failed = says_failed(canary)};
  const Reading expected = reader().read(stable, {.output = guard.output});
  const AnswerOutput* theirs = expected == Reading::kOutputs ? reader().wanted() : nullptr;
  const std::string_view name = guard.output.empty() && theirs ? theirs->name : guard.output;
  const Reading got = second_reader().read(canary, {.output = name});
  Comparison comparison{.stable_failed = expected == Reading::kFailed, .canary_failed = got == Reading::kFailed};
  if (comparison.stable_failed || comparison.canary_failed) return comparison;
  if (expected == Reading::kForeign && how.numbers_only) return {};
  if (expected == Reading::kForeign) return {.comparable = true, .mismatch = stable.bytes != canary.bytes};  // the same bytes, or not
  if (theirs == nullptr) return {};
  return compare_outputs(*theirs, got == Reading::kOutputs ? second_reader().wanted() : nullptr, guard, random, how);
}

}  // namespace serin::router
