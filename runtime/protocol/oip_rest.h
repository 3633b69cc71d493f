// oip_rest.h: the Open Inference Protocol v2 over REST, as a pure codec: JSON text <-> tensors. Knows no sockets and no models.
//
//   std::string field;
//   auto request = protocol::decode_infer_request(std::move(body), signature, &field);
//   if (!request) ... request.error().message, and field = "/inputs/0/data" for the client
//   std::string text = protocol::encode_infer_response({...});
//
// What a client may get wrong is checked here against the model's signature, so that nothing wrong ever reaches a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/result.h"

namespace serin::protocol {

/// An input or output of a model as clients see it; -1 where any size is taken.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  bool ranked = true;  ///< false: any number of dimensions is taken, `shape` says nothing
};

struct Signature {
  std::string model;  ///< as messages name it: "model 'digits' version 3"
  std::vector<TensorSpec> inputs, outputs;
};

/// Most that one request may ask for; the body limit is the HTTP server's.
struct RequestLimits {
  size_t json_depth = 100;
  size_t tensor_bytes = size_t{256} << 20;  ///< of all inputs together once decoded: INT8 as JSON text widens, so it is bounded by itself
  size_t outputs = 1024;
  size_t id_bytes = 1024;
};

struct InferRequest {
  std::string id;
  std::vector<TensorView> inputs;  ///< in the signature's order, dense, in `memory`
  AlignedBuffer memory;
  std::vector<std::vector<std::string>> texts;  ///< by input: the elements of those that are BYTES, which their views point to
  std::vector<size_t> outputs;  ///< indices into the signature's outputs, in the order asked for; all of them when none were named
  int64_t timeout_us = 0;       ///< parameter `timeout`; 0: none
};

/// Errors are the client's (kInvalidArgument, kTooLarge, kUnsupported), with the sentence tritonclient's tests know where there is one;
/// `field` gets the JSON pointer of the culprit.
Result<InferRequest> decode_infer_request(std::string body, const Signature& signature, std::string* field,
                                          const RequestLimits& limits = {});

struct NamedTensor {
  std::string_view name;
  TensorView tensor;
};
struct InferResponse {
  std::string_view model, version, id;  ///< id empty: not echoed
  std::vector<NamedTensor> outputs;
};
/// Floats in shortest round-trip form; NaN and infinities as the bare tokens that tritonclient and TensorFlow Serving clients read.
std::string encode_infer_response(const InferResponse& response);

/// `parameters`: what a server adds of its own, by name.
using Parameters = std::vector<std::pair<std::string, std::string>>;
std::string encode_model_metadata(std::string_view model, std::span<const std::string> versions, std::string_view platform,
                                  std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                                  const Parameters& parameters = {});
/// The JSON of a request with these inputs: what `serin load` and warm-up send.
std::string encode_infer_request(std::span<const NamedTensor> inputs);

}  // namespace serin::protocol
