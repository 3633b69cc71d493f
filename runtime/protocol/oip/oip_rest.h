// oip_rest.h: the Open Inference Protocol v2 over REST, as a pure codec: bytes <-> tensors. Knows no sockets and no models.
//
//   std::string field;
//   auto request = protocol::decode_infer_request({body, json_bytes}, signature, &field);
//   if (!request) ... request.error().message, and field = "/inputs/0/data" for the client
//   protocol::OipBody answer = protocol::encode_infer_response({...});
//
// What a client may get wrong is checked here against the model's signature, so that nothing wrong ever reaches a batch.
//
// Tensors come and go as JSON, or as bytes behind it (Triton's extension "binary_tensor_data"): little-endian as in memory, BYTES as a length of
// four bytes before each element. How long the JSON is says the header kJsonLength of the message.
#pragma once

#include <optional>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

inline constexpr std::string_view kJsonLength = "Inference-Header-Content-Length";
inline constexpr std::string_view kInstances = "/instances";  ///< the field that is wrong in a body of V1

struct OipBody {
  std::string bytes;
  std::optional<size_t> json_bytes = {};  ///< absent: all of it is JSON. 0, of a request: it is the only input, and nothing else
};

/// Errors are the client's (kCorrupt: JSON that has not this form; kInvalidArgument, kTooLarge, kUnsupported), with the sentence tritonclient's tests know where there is one;
/// `field` gets the JSON pointer of the culprit. The body is padded and left to its owner; `memory`: of a request that is over, to be used again.
Result<InferRequest> decode_infer_request(OipBody&& body, const Signature& signature, std::string* field, const RequestLimits& limits = {},
                                          InferRequest memory = {});

/// Of POST /v2/repository/index: whether it asks for what is ready only. An empty body asks for all.
Result<bool> decode_index_request(std::string body);

/// Floats in shortest round-trip form; NaN and infinities as the bare tokens that tritonclient and TensorFlow Serving clients read.
OipBody encode_infer_response(const InferResponse& response, std::string memory = {});

/// `parameters`: what a server adds of its own, by name.
using Parameters = std::vector<std::pair<std::string, std::string>>;
std::string encode_model_metadata(std::string_view model, std::span<const std::string> versions, std::string_view platform,
                                  std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                                  const Parameters& parameters = {});
/// A request with these inputs: what `serin load` sends.
OipBody encode_infer_request(std::span<const NamedTensor> inputs);

}  // namespace serin::protocol
