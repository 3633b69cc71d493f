// model_platform.h: whether a config.pbtxt is of a model that is served here: platform and backend say what runs it.
#pragma once

#include <string>

#include "model_config.pb.h"
#include "runtime/base/result.h"

namespace serin::serving {

/// kUnsupported: of another kind, with what makes a servable one of it: as what lies in the model's `folder` is known, or else as the platform is.
Status check_platform(const inference::ModelConfig& config, const std::string& folder);

}  // namespace serin::serving
