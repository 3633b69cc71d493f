// message_json.h: a message of protobuf as the JSON that Triton's clients read: names as in the schema, 64-bit numbers as numbers (protobuf's own JSON
// has them as strings), empty texts left out.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace serin::serving {

/// Appends it. Scalars, texts, messages, and lists of those.
void append_json(std::string& out, const google::protobuf::Message& message);

}  // namespace serin::serving
