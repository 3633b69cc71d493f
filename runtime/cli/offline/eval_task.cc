#include "runtime/cli/offline/eval_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/datasets/convert.h"
#include "runtime/steps/pipeline/numbers.h"

namespace serin::cli {
namespace {

constexpr std::string_view kScore = "score", kText = "text", kDetections = "detections";

std::string list_of(const std::vector<steps::TensorFacts>& outputs) {
  std::string names;
  for (const steps::TensorFacts& output : outputs) names.append(names.empty() ? "" : ", ").append(output.name);
  return names;
}

/// All numbers of a label's cell; nothing: it is a text.
std::optional<std::vector<double>> numbers_of(const datasets::Cell& cell) {
  std::vector<std::byte> bytes;
  if (cell.kind == datasets::Cell::Kind::kNumbers) {
    if (!datasets::append_elements({&cell, 1}, DType::kFloat64, cell.numbers.shape, bytes)) return std::nullopt;
  } else if (!datasets::append_elements({&cell, 1}, DType::kFloat64, Shape{-1}, bytes)) {
    return std::nullopt;
  }
  std::vector<double> numbers(bytes.size() / sizeof(double));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

}  // namespace

Result<EvalReader> find_output(const std::vector<steps::TensorFacts>& outputs, const std::string& name) {
  EvalReader reader;
  const auto score = std::ranges::find(outputs, kScore, &steps::TensorFacts::name);
  if (!name.empty()) {
    const auto found = std::ranges::find(outputs, name, &steps::TensorFacts::name);
    if (found == outputs.end())
      return invalid(fmt::format("--output {}: the model has no such output; outputs: {}", name, list_of(outputs)));
    reader.output = static_cast<size_t>(found - outputs.begin());
  } else if (outputs.size() == 2 && score != outputs.end()) {
    reader.output = score == outputs.begin() ? 1 : 0;
  } else if (outputs.size() != 1) {
    return invalid(fmt::format("the model has several outputs; choose one with --output: {}", list_of(outputs)));
  }
  const steps::TensorFacts& output = outputs[reader.output];
  if ((output.dtype == DType::kString || steps::is_whole_number(output.dtype)) && score != outputs.end() && score->name != output.name)
    reader.score = static_cast<size_t>(score - outputs.begin());
  return reader;
}

Result<EvalTask> infer_task(const steps::TensorFacts& output, const datasets::Rows& rows, size_t label) {
  for (size_t row = 0; row < rows.count(); ++row) {  // of a tensor of whole numbers for each row, only the pixels of a picture are left
    if (rows.faults[row]) continue;
    const datasets::Cell& cell = rows.cell(row, label);
    if (cell.kind == datasets::Cell::Kind::kNumbers && cell.numbers.shape.rank() >= 2 && steps::is_whole_number(cell.numbers.dtype) &&
        output.shape.rank() >= 2)
      return EvalTask::kSegmentation;
    break;
  }
  if (output.dtype == DType::kString)
    return output.name == kDetections ? EvalTask::kDetection : output.name == kText ? EvalTask::kText : EvalTask::kClassification;
  if (steps::is_whole_number(output.dtype)) return EvalTask::kClassification;
  const int64_t elements = output.shape.checked_elements().value_or(-1);
  bool texts = false, whole = true, classes = true, lists = false;
  for (size_t row = 0; row < rows.count(); ++row) {
    if (rows.faults[row] || rows.cell(row, label).kind == datasets::Cell::Kind::kMissing) continue;
    const auto numbers = numbers_of(rows.cell(row, label));
    texts = texts || !numbers;
    if (!numbers) continue;
    lists = lists || numbers->size() > 1;
    for (const double number : *numbers) {
      whole = whole && number == std::trunc(number);
      classes = classes && number >= 0 && (elements < 0 || number < static_cast<double>(elements));
    }
  }
  if (texts || (whole && classes && !lists && elements != 1)) return EvalTask::kClassification;
  if (lists || (!whole && elements == 1)) return EvalTask::kRegression;
  return invalid(fmt::format("output '{}' {}{} and its labels fit more than one task: give --task classification, regression or embedding",
                             output.name, dtype_name(output.dtype), output.shape.str()));
}

Status read_truth(EvalTask task, const datasets::Cell& cell, EvalRecord& record) {
  switch (task) {
    case EvalTask::kClassification:
    case EvalTask::kText:
    case EvalTask::kEmbedding: {
      SERIN_TRY(record.truth, datasets::text_of(cell));
      return {};
    }
    case EvalTask::kDetection:
      if (cell.kind != datasets::Cell::Kind::kJson && cell.kind != datasets::Cell::Kind::kField)
        return invalid(fmt::format("{}, a list of annotations is needed", datasets::describe(cell)));
      record.truth = cell.text;
      return {};
    case EvalTask::kSegmentation: return {};
    case EvalTask::kRegression: break;
  }
  const auto numbers = numbers_of(cell);
  if (!numbers || numbers->empty() || !std::ranges::all_of(*numbers, [](double number) { return std::isfinite(number); }))
    return invalid(fmt::format("{} is no finite number", datasets::describe(cell)));
  record.truth_numbers = *numbers;
  return {};
}

Result<EvalAnswer> read_answer(EvalTask task, const EvalReader& reader, std::span<const TensorView> outputs) {
  const TensorView& view = outputs[reader.output];
  EvalAnswer answer;
  if (view.dtype == DType::kString) {
    answer.texts.assign(view.as<std::string>(), view.as<std::string>() + view.elements());
  } else {
    SERIN_TRY(answer.numbers, steps::floats_of(view));
    if (task == EvalTask::kClassification && steps::is_whole_number(view.dtype)) {
      for (const float number : answer.numbers) answer.texts.push_back(fmt::to_string(static_cast<int64_t>(number)));
      answer.numbers.clear();
    }
    if (!std::ranges::all_of(answer.numbers, [](float number) { return std::isfinite(number); }))
      return invalid("the model's answer is not finite");
  }
  if (!answer.texts.empty() && reader.score) {
    SERIN_TRY(answer.numbers, steps::floats_of(outputs[*reader.score]));
  }
  return answer;
}

}  // namespace serin::cli
