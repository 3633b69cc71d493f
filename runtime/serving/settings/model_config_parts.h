// model_config_parts.h: reads the parts of config.pbtxt that have their own settings types (settings_parts.h). Internal to model_config.cc.
#pragma once

#include <string>

#include "model_config.pb.h"
#include "runtime/serving/settings/settings.h"

namespace serin::serving {

Status apply_model_config_parts(const inference::ModelConfig& config, const std::string& folder, ModelSettings& settings);

}  // namespace serin::serving
