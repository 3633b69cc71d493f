// places.h: the models in the places that `serve` is given, each with its settings.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/settings/settings.h"

namespace serin::planner {

struct FoundModel {
  std::string name, version;
  std::string path;         ///< for engine::Model::load
  std::string folder = {};  ///< of its settings; empty: a single file
  serving::ModelSettings settings;
};

/// Whether the folder is that of one model: its versions lie in it, or the model itself.
bool is_one_model(const std::string& folder);

/// The versions that `serve` would load. kNotFound names the place if there is none. `settings`: replaces serin.yaml of each; null: their own.
Result<std::vector<FoundModel>> find_models(const std::vector<std::string>& places, const config::Node* settings = nullptr);

}  // namespace serin::planner
