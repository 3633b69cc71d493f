// tfserving_grpc.h: TensorFlow Serving's PredictionService, the messages of which carry tensors: a codec that copies them once. All others are protobuf's own
// (proto/tensorflow_serving.proto).
//
//   SERIN_TRY(const TfPredictCall message, TfPredictCall::read(bytes));
//   ... find the version of message.spec ...
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

/// A ModelSpec; where it lies in the message, which must outlive it.
struct TfModelSpec {
  std::string_view model, label, signature;
  std::optional<int64_t> version;

  static TfModelSpec read(wire::Message message);
};

/// A PredictRequest.
struct TfPredictCall {
  TfModelSpec spec;
  std::vector<wire::Bytes> inputs;  ///< entries of the map
  std::vector<std::string_view> output_filter;
  const std::byte* begin = nullptr;  ///< of the message: offsets in errors count from here

  /// kInvalidArgument where it is no such message.
  static Result<TfPredictCall> read(std::string_view message);
  /// As decode_infer_request() of oip_rest.h.
  Result<InferRequest> decode(const Signature& signature, const RequestLimits& limits = {}) const;
};

/// Appends a PredictResponse of that version.
void append_tf_response(std::string& out, std::string_view model, int64_t version, std::span<const NamedTensor> outputs);

struct TfTask {
  TfModelSpec spec;
  TfMethod method = TfMethod::kClassify;
};

/// A ClassificationRequest, RegressionRequest or MultiInferenceRequest: what is asked about the same examples.
struct TfExamplesCall {
  std::vector<TfTask> tasks;  ///< at least one; all of one model
  wire::Bytes input;
  const std::byte* begin = nullptr;

  /// `method`: kPredict means MultiInference, whose tasks say it.
  static Result<TfExamplesCall> read(std::string_view message, TfMethod method);
  /// Its outputs are what the tasks take, each once.
  Result<InferRequest> decode(const Signature& signature, const RequestLimits& limits = {}) const;
};

}  // namespace serin::protocol
