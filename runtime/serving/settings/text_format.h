// text_format.h: reads protobuf's text format, which Triton and TensorFlow Serving use for their configuration.
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
  std::string meant;  ///< the nearest known field; empty: none is near
};

/// Fills the message; kInvalidArgument begins with line and column. Returns the unknown fields, which are skipped.
Result<std::vector<UnknownField>> parse_text_format(std::string_view text, google::protobuf::Message& message);

}  // namespace serin::serving
