// ensemble_plan.h: the steps of an ensemble as a graph over its tensors, checked against the models that run them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/serving/repository/version.h"
#include "runtime/serving/settings/settings_parts.h"

namespace serin::serving {

struct EnsemblePlan {
  struct Step {
    std::string name;  ///< for messages: "step 2"
    std::shared_ptr<Version> model;
    std::vector<size_t> inputs;                      ///< tensors, in the model's order
    std::vector<std::pair<size_t, size_t>> outputs;  ///< which of the model's outputs is which tensor
  };
  std::vector<Step> steps;
  size_t tensors = 0;                        ///< the ensemble's inputs come first
  std::vector<std::vector<size_t>> readers;  ///< of each tensor: steps, one that reads it twice comes twice
  std::vector<size_t> outputs;               ///< tensors, in the ensemble's order
  protocol::Signature signature;
  bool batchable = true;
  int64_t max_batch = 1, max_rows = 1;  ///< of Version

  /// `models[i]` runs step i. The error names the step and the tensor.
  static Result<EnsemblePlan> make(std::string name, const EnsembleSettings& settings, const std::vector<std::shared_ptr<Version>>& models);
};

}  // namespace serin::serving
