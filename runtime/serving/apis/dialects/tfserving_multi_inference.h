// tfserving_multi_inference.h: MultiInference of TensorFlow Serving: one inference for each signature that the tasks name, about the same
// examples. Tasks of one signature share it.
#pragma once

#include <memory>

#include "runtime/serving/apis/grpc/grpc_api.h"

namespace serin::serving {

std::unique_ptr<net::GrpcMethod> make_multi_inference(Frontend& frontend);

}  // namespace serin::serving
