// tfserving_grpc.h: a codec for the messages of TensorFlow Serving's PredictionService that contain tensors; it copies them once.
//
// All other messages use protobuf's own code (proto/tensorflow_serving.proto).
//
//   SERIN_TRY(const TfPredictCall message, TfPredictCall::read(bytes));
//   ... find the version of message.spec, and its signature ...
//   Result<InferRequest> request = message.decode(signature);
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/wire.h"
#include "runtime/protocol/infer.h"
#include "runtime/protocol/tensorflow/tfserving_examples.h"

namespace serin::protocol {

/// A ModelSpec, as views of the message, which must outlive it.
struct TfModelSpec {
  std::string_view model, label, signature;
  std::optional<int64_t> version;

  /// Takes what the message says, and keeps what it does not: a message that occurs twice is both together.
  void merge(wire::Message message);
};

/// A PredictRequest.
struct TfPredictCall {
  TfModelSpec spec;
  std::vector<wire::Bytes> inputs;  ///< entries of the map
  std::vector<std::string_view> output_filter;
  const std::byte* begin = nullptr;  ///< start of the message: offsets in errors count from here

  /// kInvalidArgument if it is not such a message.
  static Result<TfPredictCall> read(std::string_view message);
  /// Like decode_infer_request() of oip_rest.h.
  Result<InferRequest> decode(const Signature& signature, const RequestLimits& limits = {}) const;
};

/// Appends a PredictResponse of that version.
void append_tf_response(std::string& out, std::string_view model, int64_t version, std::string_view signature,
                        std::span<const NamedTensor> outputs);

struct TfTask {
  TfModelSpec spec;
  TfMethod method = TfMethod::kClassify;
};

/// A ClassificationRequest, RegressionRequest or MultiInferenceRequest: one or more tasks on the same examples.
struct TfExamplesCall {
  std::vector<TfTask> tasks;  ///< at least one; all of one model
  wire::Bytes input;
  const std::byte* begin = nullptr;

  /// `method`: kPredict means MultiInference, whose tasks name their methods.
  static Result<TfExamplesCall> read(std::string_view message, TfMethod method);
  /// Its outputs are those that the tasks need, each once.
  Result<InferRequest> decode(const Signature& signature, const RequestLimits& limits = {}) const;
};

}  // namespace serin::protocol
