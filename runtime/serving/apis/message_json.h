// message_json.h: writes a protobuf message as the JSON that Triton's clients read.
//
// Names are as in the schema. 64-bit numbers are numbers (strings in protobuf's own JSON). Messages and choices that are not set are
// omitted.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace serin::serving {

/// Appends the message. Empty texts are omitted, unless `empty_texts`.
void append_json(std::string& out, const google::protobuf::Message& message, bool empty_texts = false);

}  // namespace serin::serving
