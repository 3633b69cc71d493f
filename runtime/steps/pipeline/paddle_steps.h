// paddle_steps.h: the steps of a classifier or a detector that PaddleClas, PaddleX or PaddleDetection exported, from the file next to it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/steps/pipeline/pipeline.h"
#include "runtime/steps/vision/paddle_model.h"

namespace serin::steps {

/// The path of inference.yml or infer_cfg.yml in a folder; nothing: there is none.
std::optional<std::string> find_paddle_export(const std::string& folder);

/// Converts the description to steps around a model with these tensors, of one row; `image` is the clients' input. Nothing: the model is a
/// part of OCR, which the key `ocr` joins. kUnsupported: an order of operations that the step `picture` has not.
Result<std::optional<StepsSettings>> steps_of_paddle(const PaddleExport& model, std::span<const TensorFacts> inputs,
                                                     std::span<const TensorFacts> outputs);

}  // namespace serin::steps
