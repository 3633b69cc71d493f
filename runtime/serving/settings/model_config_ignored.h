// model_config_ignored.h: lists the fields of a Triton ModelConfig that have no effect here. Internal to model_config.cc.
#pragma once

#include <string>
#include <vector>

#include "model_config.pb.h"

namespace serin::serving {

/// Returns the fields that are set without effect, each once, by their path in the message, with the reason if there is more to say.
std::vector<std::string> ignored_fields(const inference::ModelConfig& config);

}  // namespace serin::serving
