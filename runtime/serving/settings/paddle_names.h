// paddle_names.h: serving_server_conf.prototxt, which lies beside a model that Paddle Serving's tools have exported: names that clients know tensors by.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::serving {

/// Sets the aliases that the file beside the model gives, where there is one. What it names that the model does not have is said in the log.
Status read_paddle_names(const std::string& model_path, protocol::Signature& signature);

}  // namespace serin::serving
