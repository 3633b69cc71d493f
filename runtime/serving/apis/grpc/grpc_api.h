// grpc_api.h: the doors that speak gRPC: inference.GRPCInferenceService, TensorFlow Serving's services, grpc.health.v1.Health and reflection. Codecs are runtime/protocol's, calls
// runtime/net's; here a method finds the model and starts what it asks for.
//
// Answers of a model carry x-serin-version and x-serin-batch in their head, as over REST; errors carry x-serin-code.
#pragma once

#include <google/protobuf/message_lite.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/net/grpc_server.h"
#include "runtime/serving/apis/frontend.h"

namespace serin::serving {

/// Looked up for every call: a tree would compare the same first half of every path again and again.
struct PathHash {
  using is_transparent = void;
  size_t operator()(std::string_view path) const { return std::hash<std::string_view>()(path); }
};
using GrpcMethodMap = std::unordered_map<std::string, std::unique_ptr<net::GrpcMethod>, PathHash, std::equal_to<>>;

class GrpcApi {
 public:
  explicit GrpcApi(Frontend& frontend);

  /// For net::start_grpc_server().
  net::GrpcMethod* method(std::string_view path) const;

 private:
  GrpcMethodMap methods_;
};

// For the .cc files of this door.
void add_inference_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_model_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_tfserving_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_control_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_health_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_reflection_methods(GrpcMethodMap& methods);

/// False where it is no such message; of protobuf none has more than 2 GiB.
bool parse(google::protobuf::MessageLite& message, std::string_view bytes);
/// Ends a call that came to nothing.
void finish_with(net::GrpcCall& call, const Error& error);
/// The same of a call that asks for no inference. What is not built or there already is called so: of an inference it is the client's mistake.
void finish_order_with(net::GrpcCall& call, const Error& error);

}  // namespace serin::serving
