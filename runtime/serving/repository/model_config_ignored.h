// model_config_ignored.h: what a ModelConfig of Triton's says that nothing here does. Internal to model_config.cc.
#pragma once

#include <string>
#include <vector>

#include "model_config.pb.h"

namespace serin::serving {

/// The fields that are set and change nothing, each once, by its path in the message, with the reason where there is more to say.
std::vector<std::string> ignored_fields(const inference::ModelConfig& config);

}  // namespace serin::serving
