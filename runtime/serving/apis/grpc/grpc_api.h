// grpc_api.h: the gRPC API: inference.GRPCInferenceService, grpc.health.v1.Health, reflection, and the services that other folders add.
//
// runtime/protocol has the codecs and runtime/net the calls; a method here finds the model and starts the request.
//
// Answers of a model have x-serin-version and x-serin-batch in their head, as over REST; errors have x-serin-code.
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

/// Hash for the lookup in every call: a tree would compare the common first half of all paths again and again.
struct PathHash {
  using is_transparent = void;
  size_t operator()(std::string_view path) const { return std::hash<std::string_view>()(path); }
};
using GrpcMethodMap = std::unordered_map<std::string, std::unique_ptr<net::GrpcMethod>, PathHash, std::equal_to<>>;

class GrpcApi {
 public:
  /// `methods`: as all_grpc_methods() makes them.
  explicit GrpcApi(GrpcMethodMap methods);

  /// For net::start_grpc_server().
  net::GrpcMethod* method(std::string_view path) const;

 private:
  const GrpcMethodMap methods_;
};

/// Adds the methods of this folder.
void add_grpc_methods(Frontend& frontend, GrpcMethodMap& methods);

// For the .cc files of this folder.
void add_inference_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_model_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_control_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_health_methods(Frontend& frontend, GrpcMethodMap& methods);
void add_reflection_methods(GrpcMethodMap& methods);

/// False if it is not such a message; protobuf's messages are limited to 2 GiB.
bool parse(google::protobuf::MessageLite& message, std::string_view bytes);
/// Ends a failed call.
void finish_with(net::GrpcCall& call, const Error& error);
/// The same for a call that is not an inference. "Not supported" and "already exists" have their own codes there; for an inference they are
/// the client's error.
void finish_order_with(net::GrpcCall& call, const Error& error);

}  // namespace serin::serving
