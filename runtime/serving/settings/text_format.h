// text_format.h: protobuf's text format, in which Triton and TensorFlow Serving keep their configuration.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::serving {

struct UnknownField {
  std::string name;
  int line = 0;
  std::string meant;  ///< the nearest of those that there are; empty: none is near
};

/// Fills the message; kInvalidArgument begins with line and column. What fields it does not have comes back: they are left out.
Result<std::vector<UnknownField>> parse_text_format(std::string_view text, google::protobuf::Message& message);

}  // namespace serin::serving
