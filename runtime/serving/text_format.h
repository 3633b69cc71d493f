// text_format.h: protobuf's text format, in which Triton and TensorFlow Serving keep their configuration.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::serving {

/// Fills the message; kInvalidArgument begins with line and column. What fields it does not have comes back by name, with the line: they are left out.
Result<std::vector<std::string>> parse_text_format(std::string_view text, google::protobuf::Message& message);

}  // namespace serin::serving
