// ensemble_plan.h: the steps of an ensemble as a graph over its tensors, checked against the models that run them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/serving/scheduling/served.h"
#include "runtime/serving/settings/settings_parts.h"

namespace serin::serving {

struct EnsemblePlan {
  struct Step {
    std::string name;  ///< for messages: "step 2"
    std::shared_ptr<const ServedModel> model;
    std::vector<size_t> inputs;                      ///< indices of tensors, in the model's order
    std::vector<std::pair<size_t, size_t>> outputs;  ///< index of a model's output, index of its tensor
  };
  std::vector<Step> steps;
  size_t tensors = 0;                        ///< the ensemble's inputs come first
  std::vector<std::vector<size_t>> readers;  ///< for each tensor: steps; a step that reads it twice is listed twice
  std::vector<size_t> outputs;               ///< indices of tensors, in the ensemble's order
  protocol::Signature signature;
  bool batchable = true;
  int64_t max_batch = 1, max_rows = 1;  ///< as in Served

  /// `models[i]` runs step i. The error names the step and the tensor.
  static Result<EnsemblePlan> make(std::string name, const EnsembleSettings& settings, const ServedModels& models);
};

}  // namespace serin::serving
