// answer_json.h: answers as JSON that may hold bare NaN and Infinity. Internal to runtime/protocol.
#pragma once

#include <string>

#include "runtime/protocol/json.h"
#include "runtime/protocol/oip_rest.h"

namespace serin::protocol {

/// As parse_json; where the text is JSON but for bare NaN and infinities, these read as 0 and `finite` becomes false.
Result<Document> parse_answer_json(std::string& body, bool& finite);

/// Dimensions into output.shape; elements, as many as the shape has, into output.values.
Status read_shape(const simdjson::dom::array& shape, OutputValues& output);
Status read_elements(const simdjson::dom::array& data, OutputValues& output);
/// One output of the Open Inference Protocol: its name, datatype and shape; then its elements as JSON.
Result<OutputValues> read_output_head(const simdjson::dom::element& element);
Status read_output_data(const simdjson::dom::element& element, OutputValues& output);

}  // namespace serin::protocol
