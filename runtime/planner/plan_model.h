// plan_model.h: plans one version of a model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/answer.h"
#include "runtime/planner/places.h"

namespace serin::planner {

struct LoadedModel {
  std::shared_ptr<engine::Model> model;
  serving::Precision precision = serving::Precision::kFp32;
  std::string why;  ///< explanation of the precision; empty: it is the one that was named
};
/// As `serve` loads it on the CPU, or for its plans only.
Result<LoadedModel> load_model(const FoundModel& found, const Machine& machine, bool only_plans);

/// Sizes for all batches of the question, with what it says about other dimensions, which `settings` then has, too.
Result<std::vector<graph::Bindings>> sizes_of(const engine::Model& model, const Question& question, serving::ModelSettings& settings);

/// Rows of a batch of these sizes.
int64_t rows_of(const engine::Model& model, const graph::Bindings& sizes);

/// Constants that something reads, each once.
struct Parameters {
  int64_t count = 0;
  size_t bytes = 0;
};
Parameters parameters_of(const graph::Graph& graph);

/// `found.settings` already has what the question says.
Result<ModelAnswer> plan_model(const FoundModel& found, const Question& question, const Machine& machine);

}  // namespace serin::planner
