// grpc_call.h: what a call of gRPC asks for, by its method and its first message, and how it is named anew for an endpoint. Pure.
//
//   /inference.GRPCInferenceService/ModelInfer    the model that the message names (Open Inference Protocol)
//   any other method                              the service that the header x-serin-service names
//
// The name stands in the message, and of a field that stands there twice readers take the last. So the name under which the router knows the
// model, or that which the endpoint's url gives it, is appended to every message that goes on: the backend cannot understand another one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/buffer.h"
#include "runtime/net/grpc.h"

namespace serin::router {

/// Of the Open Inference Protocol and Triton's extensions to it: what names a model.
struct ModelMethod {
  std::string_view path;
  bool infer = false;    ///< drawn and judged
  bool streams = false;  ///< any number of messages each way
};
/// Null: none of them.
const ModelMethod* find_model_method(std::string_view path);

/// By the first message of a call, from its body so far. Nothing: not enough has come yet. kInvalidArgument: it names none.
Result<std::optional<std::string>> model_named_in(std::string_view body, bool complete);

/// The fields that name a model for an endpoint: `path` as in its url, "/v2/models/digits/versions/2" or empty.
std::string naming_fields(std::string_view model, std::string_view path);

/// Appends the same fields to every message of a call while it goes by.
class MessageNamer {
 public:
  void begin(std::string fields);
  bool active() const { return !fields_.empty(); }
  void feed(std::string_view bytes, net::Buffer& out);

 private:
  void begin_message(net::Buffer& out);

  std::string fields_, prefix_;  // prefix: what has come of one
  uint64_t left_ = 0;            // of the message
  bool named_ = false;           // it will be; a compressed one goes as it is
};

}  // namespace serin::router
