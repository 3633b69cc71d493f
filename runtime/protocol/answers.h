// answers.h: the outputs in an answer of any inference protocol that the router meets, for whoever compares two of them or looks at one.
//
//   const auto outputs = protocol::decode_answer(body, json_bytes);       // kCorrupt: of no protocol known here
//
// Open Inference Protocol v2 (JSON, and binary tensors after the JSON), TensorFlow Serving's REST API (rows and columns), Paddle Serving (the C++
// server's tensors and the pipeline's texts). Which one it is shows in the answer itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/protocol/oip_rest.h"

namespace serin::protocol {

/// json_bytes: the header Inference-Header-Content-Length, where binary tensors follow. kInternal: the answer says that the inference failed
/// (Paddle does so with status 200). Outputs of texts have no values.
Result<std::vector<OutputValues>> decode_answer(std::string body, std::optional<size_t> json_bytes = std::nullopt);

}  // namespace serin::protocol
