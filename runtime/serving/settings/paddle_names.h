// paddle_names.h: reads clients' names for tensors from serving_server_conf.prototxt, which Paddle Serving's tools export with a model.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::serving {

/// Sets the aliases from the file next to the model, if it exists. The log reports names that the model does not have.
Status read_paddle_names(const std::string& model_path, protocol::Signature& signature);

}  // namespace serin::serving
