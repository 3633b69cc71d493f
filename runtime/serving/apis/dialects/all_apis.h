// all_apis.h: puts the APIs of the server together, for HttpApi and GrpcApi.
#pragma once

#include "runtime/serving/apis/grpc/grpc_api.h"
#include "runtime/serving/apis/path_api.h"

namespace serin::serving {

/// In the order in which they are asked for a path:
///
///   /GeneralModelService/..., /M/prediction    Paddle Serving (paddle_api.h)
///   /v1/models...                              TensorFlow Serving's API, KServe's V1 protocol (tfserving_api.h)
///   /v1/config...                              OpenVINO Model Server's own API (ovms_api.h)
///   /v2/repository..., /v2/logging ...         Triton's extensions for admin requests (control_api.h)
///   every other path                           the Open Inference Protocol (rest_api.h)
PathApis all_http_apis(Frontend& frontend);

/// The methods of the Open Inference Protocol, of TensorFlow Serving, and those that every gRPC server has.
GrpcMethodMap all_grpc_methods(Frontend& frontend);

}  // namespace serin::serving
