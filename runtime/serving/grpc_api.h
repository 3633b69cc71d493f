// grpc_api.h: the doors that speak gRPC: inference.GRPCInferenceService, TensorFlow Serving's services, grpc.health.v1.Health and reflection. Codecs are runtime/protocol's, calls
// runtime/net's; here a method finds the model and starts what it asks for.
//
// Answers of a model carry x-serin-version and x-serin-batch in their head, as over REST; errors carry x-serin-code.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/net/grpc_server.h"
#include "runtime/serving/frontend.h"

namespace serin::serving {

class GrpcApi {
 public:
  explicit GrpcApi(Frontend& frontend);

  /// For net::start_grpc_server().
  net::GrpcMethod* method(std::string_view path) const;

 private:
  std::map<std::string, std::unique_ptr<net::GrpcMethod>, std::less<>> methods_;
};

// For the .cc files of this door: methods by path.
using GrpcMethodMap = std::map<std::string, std::unique_ptr<net::GrpcMethod>, std::less<>>;
void add_inference_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_model_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_tfserving_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_control_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_health_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_reflection_methods(GrpcMethodMap& methods);

/// Ends a call that came to nothing.
void finish_with(net::GrpcCall& call, const Error& error);

}  // namespace serin::serving
