// eval_task.h: what a model is for, and which parts of its answers and of the data tell whether it is right.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/offline/eval_records.h"
#include "runtime/datasets/dataset.h"
#include "runtime/steps/pipeline/step.h"

namespace serin::cli {

enum class EvalTask : uint8_t { kClassification, kRegression, kText, kDetection, kEmbedding, kSegmentation };
inline constexpr std::array<std::string_view, 6> kEvalTasks = {"classification", "regression", "text",
                                                               "detection",      "embedding",  "segmentation"};

/// How to read one model's answers.
struct EvalReader {
  size_t output = 0;
  std::optional<size_t> score;  ///< of an output of texts or class numbers
};

/// `name`: --output; empty: the output that the steps of the model make, or the only one. kInvalidArgument names the outputs.
Result<EvalReader> find_output(const std::vector<steps::TensorFacts>& outputs, const std::string& name);

/// Infers the task from the output and the first rows of labels. kInvalidArgument asks for --task where both make sense.
Result<EvalTask> infer_task(const steps::TensorFacts& output, const datasets::Rows& rows, size_t label);

/// Reads the truth of a row; nothing of pixels, which are counted together with the answer (eval_pixels.h). The error says what the cell is.
Status read_truth(EvalTask task, const datasets::Cell& cell, EvalRecord& record);
/// Reads the answer of a row.
Result<EvalAnswer> read_answer(EvalTask task, const EvalReader& reader, std::span<const TensorView> outputs);

}  // namespace serin::cli
