// model_place.h: finds a model, and the steps around it, by what a user names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/engine.h"
#include "runtime/serving/scheduling/row_steps.h"
#include "runtime/steps/pipeline/pipeline.h"

namespace serin::cli {

struct ModelPlace {
  std::string file;            ///< for engine::Model::load
  steps::StepsSettings steps;  ///< of serin.yaml; `given` also where a server would read no file of Paddle's projects
  std::string settings;        ///< folder of serin.yaml or config.pbtxt; empty: a single file
};

/// `path`: a model's file (no steps), a model's folder with versions (the highest one), or the folder of a version. kNotFound,
/// kUnsupported, kInvalidArgument: the message names the path.
Result<ModelPlace> find_model(const std::string& path);

/// The steps around a model with these tensors: those of its settings, else those of a file of Paddle's projects next to it. kUnsupported: a
/// tensor is no tensor of known rank.
Result<serving::RowSteps> steps_around(const ModelPlace& place, std::span<const engine::TensorInfo> inputs,
                                       std::span<const engine::TensorInfo> outputs, bool batchable);

/// All files that decide what the model answers, sorted: the model's own, with weights next to it, and those of its settings.
Result<std::vector<std::string>> files_of(const ModelPlace& place);

}  // namespace serin::cli
