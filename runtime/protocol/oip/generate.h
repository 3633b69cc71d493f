// generate.h: a codec for Triton's generate extension of the Open Inference Protocol over REST, with one flat object in each direction.
//
//   {"text": "hello", "temperature": 0.5}     ->     {"model_name":"m","model_version":"1","embedding":[0.25,-1]}
//
// A field with the name of an input is that input, as a value or a flat list of values. `id` is the request's ID. All other fields are
// parameters, at the top level or under "parameters", where inputs are also accepted. An answer has each output under its name: flat, or a
// bare value if there is only one.
//
// Shapes are not sent. Open sizes of a model follow from the number of values. The innermost open axis takes what the fixed axes leave;
// those before it are 1. Sources: Triton's docs/protocol/extension_generate.md and its behaviour.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

/// Like decode_infer_request() (oip_rest.h). The body is padded and stays with its owner.
Result<InferRequest> decode_generate_request(std::string& body, const Signature& signature, std::string* field,
                                             const RequestLimits& limits = {}, InferRequest memory = {});

/// The fields of every answer (model_name, model_version, and id if the request had one) replace outputs of the same name, as in Triton.
std::string encode_generate_response(const InferResponse& response, std::string memory = {});

/// Formats an answer, or an error, as the only event of an event stream (text/event-stream).
std::string as_event(std::string_view json);

}  // namespace serin::protocol
