// paddle.h: Paddle Serving over HTTP, as a pure codec: the C++ server's Request and Response, as JSON or as protobuf, and the pipeline's texts.
//
//   C++ server   {"tensor": [{"name": "x", "elem_type": 1, "shape": [1, 2], "float_data": [1, 2]}], "fetch_var_names": ["y"], "log_id": 7}
//   pipeline     {"key": ["x"], "value": ["[[1, 2]]"], "logid": 7}
//
// A pipeline's value is the text of a list as JSON has it (Python's json.dumps(); its str() quotes texts otherwise, which is not read), or a text of BYTES as it is.
//
// Tensors go by the names of the model's signature, as alias_name or as name; an only one needs none. Sources: github.com/PaddlePaddle/Serving,
// core/general-server/proto/general_model_service.proto, python/pipeline/gateway/proto/gateway.proto.
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
/// As decode_infer_request() of oip_rest.h.
Result<PaddleRequest> decode_paddle(PaddleForm form, std::string body, const Signature& signature, std::string* field,
                                    const RequestLimits& limits = {});

std::string encode_paddle(PaddleForm form, std::string_view model, std::span<const NamedTensor> outputs, uint64_t log_id);
/// What its clients look for in place of outputs: err_no, which is not 0, and err_msg.
std::string encode_paddle_error(PaddleForm form, std::string_view message);

}  // namespace serin::protocol
