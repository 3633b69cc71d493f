#include "runtime/serving/apis/message_json.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/net/http.h"
#include "runtime/protocol/json/json_write.h"

namespace serin::serving {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

/// What JSON has no number for is a text, as in protobuf's own JSON.
template <class Number>
void append_number(std::string& out, Number number) {
  if (std::isfinite(number))
    protocol::append_number(out, number);
  else
    out += std::isnan(number) ? R"("NaN")" : number > 0 ? R"("Infinity")" : R"("-Infinity")";
}

/// The value of a field, or the index-th of a list.
void append_value(std::string& out, const Message& message, const FieldDescriptor& field, int index, bool empty_texts) {
  const Reflection& in = *message.GetReflection();
  const bool one = !field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      out += (one ? in.GetBool(message, &field) : in.GetRepeatedBool(message, &field, index)) ? "true" : "false";
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      out += std::to_string(one ? in.GetInt32(message, &field) : in.GetRepeatedInt32(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      out += std::to_string(one ? in.GetUInt32(message, &field) : in.GetRepeatedUInt32(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      out += std::to_string(one ? in.GetInt64(message, &field) : in.GetRepeatedInt64(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      out += std::to_string(one ? in.GetUInt64(message, &field) : in.GetRepeatedUInt64(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      append_number(out, one ? in.GetFloat(message, &field) : in.GetRepeatedFloat(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      append_number(out, one ? in.GetDouble(message, &field) : in.GetRepeatedDouble(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      out += net::json_quote(one ? in.GetString(message, &field) : in.GetRepeatedString(message, &field, index));
      break;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* value = one ? in.GetEnum(message, &field) : in.GetRepeatedEnum(message, &field, index);
      out += net::json_quote(value->name());
      break;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      append_json(out, one ? in.GetMessage(message, &field) : in.GetRepeatedMessage(message, &field, index), empty_texts);
      break;
    default: out += "null";  // no message that is printed has fields of other types
  }
}

/// Keys of JSON are texts, whatever the key is; in their order.
void append_map(std::string& out, const Message& message, const FieldDescriptor& field, bool empty_texts) {
  const Reflection& in = *message.GetReflection();
  std::vector<std::string> entries;
  for (int i = 0; i < in.FieldSize(message, &field); ++i) {
    const Message& entry = in.GetRepeatedMessage(message, &field, i);
    std::string text;
    append_value(text, entry, *field.message_type()->map_key(), 0, empty_texts);
    if (text.front() != '"') text.insert(0, 1, '"') += '"';
    append_value(text += ':', entry, *field.message_type()->map_value(), 0, empty_texts);
    entries.push_back(std::move(text));
  }
  std::ranges::sort(entries);
  out += fmt::format("{{{}}}", fmt::join(entries, ","));
}

bool is_left_out(const Message& message, const FieldDescriptor& field, bool empty_texts) {
  if (field.is_repeated()) return false;
  const Reflection& in = *message.GetReflection();
  if (field.has_presence()) return !in.HasField(message, &field);
  return !empty_texts && field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && in.GetString(message, &field).empty();
}

}  // namespace

void append_json(std::string& out, const Message& message, bool empty_texts) {
  const Reflection& in = *message.GetReflection();
  out += '{';
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (is_left_out(message, field, empty_texts)) continue;
    if (out.back() != '{') out += ',';
    (out += net::json_quote(field.name())) += ':';
    if (field.is_map()) {
      append_map(out, message, field, empty_texts);
    } else if (!field.is_repeated()) {
      append_value(out, message, field, 0, empty_texts);
    } else {
      out += '[';
      for (int item = 0; item < in.FieldSize(message, &field); ++item) {
        if (item > 0) out += ',';
        append_value(out, message, field, item, empty_texts);
      }
      out += ']';
    }
  }
  out += '}';
}

}  // namespace serin::serving
