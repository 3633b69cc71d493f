#include "runtime/serving/message_json.h"

#include <google/protobuf/descriptor.h>

#include "runtime/net/http.h"

namespace serin::serving {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

/// The value of a field, or the index-th of a list.
void append_value(std::string& out, const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& in = *message.GetReflection();
  const bool one = !field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      out += (one ? in.GetBool(message, &field) : in.GetRepeatedBool(message, &field, index)) ? "true" : "false";
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      out += std::to_string(one ? in.GetInt64(message, &field) : in.GetRepeatedInt64(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      out += std::to_string(one ? in.GetUInt64(message, &field) : in.GetRepeatedUInt64(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      out += net::json_quote(one ? in.GetString(message, &field) : in.GetRepeatedString(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      append_json(out, one ? in.GetMessage(message, &field) : in.GetRepeatedMessage(message, &field, index));
      break;
    default: out += "null";  // no message that is printed has fields of other types
  }
}

}  // namespace

void append_json(std::string& out, const Message& message) {
  const Reflection& in = *message.GetReflection();
  out += '{';
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (!field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && in.GetString(message, &field).empty()) continue;
    if (out.back() != '{') out += ',';
    (out += net::json_quote(field.name())) += ':';
    if (!field.is_repeated()) {
      append_value(out, message, field, 0);
      continue;
    }
    out += '[';
    for (int item = 0; item < in.FieldSize(message, &field); ++item) {
      if (item > 0) out += ',';
      append_value(out, message, field, item);
    }
    out += ']';
  }
  out += '}';
}

}  // namespace serin::serving
