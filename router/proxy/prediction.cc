#include "router/proxy/prediction.h"

#include <algorithm>
#include <cmath>

#include "router/config/config_outcomes.h"

namespace serin::router {
namespace {

using protocol::AnswerOutput;
using protocol::AnswerReader;
using protocol::Reading;
using Kind = Prediction::Kind;
using Class = LabelConfig::Class;

constexpr size_t kMostRows = 10'000;

Prediction unread(std::string_view why) { return {.kind = Kind::kUnread, .why = why}; }

bool has_columns(const AnswerOutput& output) { return output.shape.rank() > 1 && protocol::row_width(output.shape) > 1; }

Prediction read_texts(const AnswerOutput& output) {
  if (has_columns(output)) return unread("its answer has several texts a row");
  Prediction prediction{.kind = Kind::kTexts};
  for (const std::string_view text : output.strings) {
    if (text.size() > kLongestClass) return unread("its answer has a text that is too long for a class");
    prediction.rows.push_back(code_of(text));
  }
  return prediction;
}

/// The index of the highest score of each row, or the text that is there.
Prediction read_highest(const AnswerOutput& output) {
  const size_t width = protocol::row_width(output.shape);
  if (width < 2) return unread("its answer has one number a row: `labels` in router.yaml needs class: value, or a threshold");
  const bool named = !output.strings.empty();
  if (named && output.strings.size() != output.values.size()) return unread("its answer has texts and numbers that do not belong together");
  Prediction prediction{.kind = named ? Kind::kTexts : Kind::kNumbers};
  for (size_t row = 0; row < output.values.size(); row += width) {
    const auto scores = output.values.subspan(row, width);
    const auto best = static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
    prediction.rows.push_back(named ? code_of(output.strings[row + best]) : code_of(static_cast<double>(best)));
  }
  return prediction;
}

Prediction read_values(const AnswerOutput& output, const LabelConfig& config) {
  if (has_columns(output)) return unread("its answer has several numbers a row: `labels` in router.yaml needs class: argmax");
  Prediction prediction{.kind = Kind::kNumbers};
  for (const double value : output.values) {
    if (config.take == Class::kValue && value != std::floor(value))
      return unread("its answer has a number that is not whole, and no class: `labels` in router.yaml needs class: argmax, or a threshold");
    prediction.rows.push_back(code_of(config.take == Class::kValue ? value : value >= config.threshold ? 1. : 0.));
  }
  return prediction;
}

}  // namespace

Prediction read_prediction(const protocol::AnswerBody& answer, const LabelConfig& config) {
  thread_local AnswerReader reader;
  const Reading reading = reader.read(answer, {.output = config.output, .strings = true});
  if (reading == Reading::kFailed) return {.kind = Kind::kFailed};
  if (reading == Reading::kForeign) return unread("its answer is of no protocol that the router can read");
  const AnswerOutput* output = reader.wanted();
  if (output == nullptr) return unread("its answer has no such output as `labels` in router.yaml names");
  if (output->values.empty() && output->strings.empty())
    return unread("the output of its answer has no rows, or no classes that can be read");
  const size_t width = config.take == Class::kArgmax && !output->values.empty() ? protocol::row_width(output->shape) : 1;
  if (std::max(output->values.size(), output->strings.size()) / width > kMostRows) return unread("its answer has more than 10000 rows");
  if (output->values.empty()) return read_texts(*output);
  return config.take == Class::kArgmax || !output->strings.empty() ? read_highest(*output) : read_values(*output, config);
}

}  // namespace serin::router
