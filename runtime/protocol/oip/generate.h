// generate.h: Triton's generate extension of the Open Inference Protocol over REST, as a pure codec: one flat object each way, which a person can type.
//
//   {"text": "hello", "temperature": 0.5}     ->     {"model_name":"m","model_version":"1","embedding":[0.25,-1]}
//
// A field that is called as an input is that input, a value or a flat list of values; `id` is the request's, and all else parameters, at the top or under "parameters", where inputs may stand, too.
// An answer has each output under its name, flat, and as a bare value where that is all of it. Shapes are not said; the sizes that a model leaves open are found from the number
// of values (Triton's docs/protocol/extension_generate.md and what it does): the innermost takes what the fixed ones leave, those before it are 1.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

/// As decode_infer_request() (oip_rest.h). The body is padded and left to its owner.
Result<InferRequest> decode_generate_request(std::string& body, const Signature& signature, std::string* field,
                                             const RequestLimits& limits = {}, InferRequest memory = {});

/// An output that is called as what every answer has (model_name, model_version, and id where the request had one) gives way to it, as there.
std::string encode_generate_response(const InferResponse& response, std::string memory = {});

/// An answer, or an error, as the only event of a stream of events (text/event-stream).
std::string as_event(std::string_view json);

}  // namespace serin::protocol
