// tfserving_grpc.h: TensorFlow Serving's PredictionService and ModelService over gRPC.
#pragma once

#include "runtime/serving/apis/grpc/grpc_api.h"

namespace serin::serving {

void add_tfserving_methods(Frontend& frontend, GrpcMethodMap& methods);

}  // namespace serin::serving
