// tfserving_config.h: the file of tensorflow_model_server's --model_config_file, and the same as a message.
//
//   model_config_list { config { name: "digits" base_path: "/models/digits" model_version_policy { latest { num_versions: 2 } } } }
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/model_source.h"

namespace tensorflow::serving {
class ModelServerConfig;
}

namespace serin::serving {

/// One root for each model. Errors name the file, and the line where it is a mistake in it.
Result<std::vector<ModelRoot>> read_tf_config(const std::string& path);
Result<std::vector<ModelRoot>> roots_of(const tensorflow::serving::ModelServerConfig& config);

}  // namespace serin::serving
