// message_json.h: a message of protobuf as the JSON that Triton's clients read: names as in the schema, 64-bit numbers as numbers (protobuf's own JSON
// has them as strings), messages and choices left out where they are not set.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace serin::serving {

/// Appends it. Empty texts are left out, unless `empty_texts`.
void append_json(std::string& out, const google::protobuf::Message& message, bool empty_texts = false);

}  // namespace serin::serving
