// oip_rest.h: a codec for the Open Inference Protocol v2 over REST, between bytes and tensors. It knows no sockets and no models.
//
//   std::string field;
//   auto request = protocol::decode_infer_request({body, json_bytes}, signature, &field);
//   if (!request) ... request.error().message, and field = "/inputs/0/data" for the client
//   protocol::OipBody answer = protocol::encode_infer_response({...});
//
// It checks the request against the model's signature, so that no invalid request reaches a batch.
//
// Tensors are JSON, or bytes after it (Triton's extension "binary_tensor_data"). The bytes are little-endian as in memory; each BYTES
// element follows a length of four bytes. The header kJsonLength of the message has the length of the JSON.
#pragma once

#include <optional>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

inline constexpr std::string_view kJsonLength = "Inference-Header-Content-Length";
inline constexpr std::string_view kInstances = "/instances";  ///< the invalid field of a body of V1

struct OipBody {
  std::string bytes;
  std::optional<size_t> json_bytes = {};  ///< absent: all of it is JSON. 0 in a request: the whole body is the only input
};

/// Errors are the client's: kCorrupt (JSON of another form), kInvalidArgument, kTooLarge, kUnsupported. They use the sentences that
/// tritonclient's tests expect, if any. `field` receives the JSON pointer of the invalid field. The body is padded and stays with its
/// owner. `memory`: a finished request, whose memory is reused.
Result<InferRequest> decode_infer_request(OipBody&& body, const Signature& signature, std::string* field, const RequestLimits& limits = {},
                                          InferRequest memory = {});

/// Whether a body without JSON is the only element of such a model's only input (TensorSpec::body): a picture, a sentence.
bool is_lone_element(std::string_view body, const Signature& signature);
/// Makes the request of such a body. kTooLarge, kOverloaded.
Result<InferRequest> decode_lone_element(std::string_view body, const Signature& signature, const RequestLimits& limits = {},
                                         InferRequest memory = {});

/// Decodes POST /v2/repository/index: whether it requests ready models only. An empty body requests all.
Result<bool> decode_index_request(std::string body);

/// Floats are in shortest round-trip form. NaN and infinities are the bare tokens that tritonclient and TensorFlow Serving clients read.
OipBody encode_infer_response(const InferResponse& response, std::string memory = {});

/// `parameters`: fields that a server adds, by name.
using Parameters = std::vector<std::pair<std::string, std::string>>;
std::string encode_model_metadata(std::string_view model, std::span<const std::string> versions, std::string_view platform,
                                  std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                                  const Parameters& parameters = {});
/// Encodes a request with these inputs, for `serin load`.
OipBody encode_infer_request(std::span<const NamedTensor> inputs);

}  // namespace serin::protocol
