// grpc_call.h: Finds the model of a gRPC call by its method and first message, and renames it for an endpoint. Pure.
//
//   /inference.GRPCInferenceService/ModelInfer       the model that the message names (Open Inference Protocol)
//   /tensorflow.serving.PredictionService/Predict    the model of its ModelSpec (TensorFlow Serving)
//   any other method                                 the service that the header x-serin-service names
//
// The name is a field of the message, or of a message in it. If a field appears twice, protobuf readers take the last one, and of messages
// in it they take both together. So the name that the router or the endpoint's URL gives the model is appended to every forwarded message: the
// backend cannot read a different one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/buffer.h"
#include "runtime/net/grpc.h"

namespace serin::router {

/// Where the messages of a method name their model.
enum class Naming : uint8_t {
  kNone,    ///< nowhere
  kFields,  ///< Open Inference Protocol: name and version are fields of the message
  kSpec     ///< TensorFlow Serving: of a ModelSpec in it, which also names the signature
};

/// Methods that name a model: of the Open Inference Protocol with Triton's extensions, and of TensorFlow Serving.
struct ModelMethod {
  std::string_view path;
  Naming naming = Naming::kFields;
  bool infer = false;    ///< drawn and judged
  bool streams = false;  ///< any number of messages each way
};
/// Null: another method.
const ModelMethod* find_model_method(std::string_view path);

/// The model that the first message of a call names, from its body so far. Nothing: too few bytes yet. kInvalidArgument: it names none.
Result<std::optional<std::string>> model_named_in(Naming naming, std::string_view body, bool complete);

/// The fields that name a model for an endpoint. `path` as in its URL: "/v2/models/digits/versions/2" or empty; for a ModelSpec also "/v1/models/".
/// The version that a client names in a ModelSpec stays, unless the path names one: no field can take it away.
std::string naming_fields(Naming naming, std::string_view model, std::string_view path);

/// Appends the same fields to every message of a call as it passes.
class MessageNamer {
 public:
  void begin(std::string fields);
  bool active() const { return !fields_.empty(); }
  void feed(std::string_view bytes, net::Buffer& out);

 private:
  void begin_message(net::Buffer& out);

  std::string fields_, prefix_;  // prefix: the bytes received of the next message prefix
  uint64_t left_ = 0;            // of the current message
  bool named_ = false;           // the current one is renamed; a compressed one passes unchanged
};

}  // namespace serin::router
