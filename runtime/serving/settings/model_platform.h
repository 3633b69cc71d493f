// model_platform.h: checks by platform and backend whether the model of a config.pbtxt can be served here.
#pragma once

#include <string>
#include <string_view>

#include "model_config.pb.h"
#include "runtime/base/result.h"

namespace serin::serving {

/// kUnsupported: a model of another kind, with instructions to convert it. They depend on the files in the model's `folder`, or else on the
/// platform.
Status check_platform(const inference::ModelConfig& config, const std::string& folder);

/// The file that such a model has in Triton if default_model_filename names none; empty: model.onnx.
std::string file_of_platform(const inference::ModelConfig& config);

/// The platform in the metadata of the model at `path`: the platform or backend of Triton that `config` (may be null) names. Otherwise the format's, as
/// "paddle_serin".
std::string_view platform_of(const inference::ModelConfig* config, const std::string& path);

}  // namespace serin::serving
