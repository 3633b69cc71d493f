// json.h: simdjson behind the three questions that the codecs ask. Internal to runtime/protocol.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::protocol {

/// The document, valid until this thread's next call. The parser's buffers are kept by each thread: a steady stream of requests allocates
/// nothing here. It bounds the nesting (no recursion deeper than `depth`) and checks UTF-8. `body` is padded in place.
Result<simdjson::dom::element> parse_json(std::string& body, size_t depth);
/// Bytes that this thread's parser has room for: no document it holds is longer.
size_t json_capacity();

/// "an array", "null", "a number": for messages.
std::string_view kind_of(const simdjson::dom::element& element);

/// Reads numbers (or booleans) into the tensor's memory, from a flat list or from lists nested as its shape is; errors name the element.
Status read_elements(const simdjson::dom::array& data, const TensorView& tensor, std::string_view name);

}  // namespace serin::protocol
