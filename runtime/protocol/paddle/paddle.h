// paddle.h: a codec for Paddle Serving over HTTP: the C++ server's Request and Response, as JSON or protobuf, and the pipeline's texts.
//
//   C++ server   {"tensor": [{"name": "x", "elem_type": 1, "shape": [1, 2], "float_data": [1, 2]}], "fetch_var_names": ["y"], "log_id": 7}
//   pipeline     {"key": ["x"], "value": ["[[1, 2]]"], "logid": 7}
//
// A pipeline's value is a JSON list as text, or the text of a BYTES element. Python's json.dumps() writes such lists; its str() quotes
// texts differently and is not accepted.
//
// Tensors have the names of the model's signature, as alias_name or as name; a single tensor needs none. Sources:
// github.com/PaddlePaddle/Serving, core/general-server/proto/general_model_service.proto, python/pipeline/gateway/proto/gateway.proto.
#pragma once

#include <cstdint>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

enum class PaddleForm : uint8_t { kJson, kProto, kPipeline };

struct PaddleRequest {
  InferRequest infer;
  uint64_t log_id = 0;  ///< echoed
};
/// Like decode_infer_request() of oip_rest.h.
Result<PaddleRequest> decode_paddle(PaddleForm form, std::string body, const Signature& signature, std::string* field,
                                    const RequestLimits& limits = {});

std::string encode_paddle(PaddleForm form, std::string_view model, std::span<const NamedTensor> outputs, uint64_t log_id);
/// Encodes the error fields that Paddle's clients check instead of outputs: err_no, which is not 0, and err_msg.
std::string encode_paddle_error(PaddleForm form, std::string_view message);

}  // namespace serin::protocol
