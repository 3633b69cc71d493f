// schema_text.cc: each member takes one line, so that a change of one member is a change of one line.

#include "runtime/base/schema_text.h"

#include <fmt/format.h>

namespace serin::schema {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out;
  append_json_quoted(out, text);
  return out;
}

std::string joined_words(std::span<const std::string_view> words, std::string_view between) {
  std::string out;
  for (const std::string_view word : words) out += (out.empty() ? "" : std::string(between)) + in_quotes(word);
  return out;
}

std::string type_word(const Member& member) {
  switch (member.kind) {
    case Kind::kBoolean: return "boolean";
    case Kind::kInteger:
    case Kind::kUnsigned: return "integer";
    case Kind::kNumber: return "number";
    case Kind::kText: return "string";
    case Kind::kObject: break;
  }
  return "object";
}

bool is_nullable(const Member& member) { return member.may_be_empty && !member.format.may_be_absent; }

/// `"type": "integer", "minimum": 0`: the schema of one element, without braces.
std::string element_schema(const Member& member, bool nullable) {
  if (member.kind == Kind::kObject) {
    const std::string reference = fmt::format(R"("$ref": "#/components/schemas/{}")", member.object);
    return nullable ? fmt::format(R"("oneOf": [{{"type": "null"}}, {{{}}}])", reference) : reference;
  }
  const Format& format = member.format;
  if (!format.words.empty()) return fmt::format(R"("enum": [{}{}])", joined_words(format.words, ", "), nullable ? ", null" : "");
  std::string text =
      fmt::format(R"("type": {})", nullable ? fmt::format(R"(["{}", "null"])", type_word(member)) : in_quotes(type_word(member)));
  if (!format.kind.empty()) text += fmt::format(R"(, "format": {})", in_quotes(format.kind));
  if (format.least || member.kind == Kind::kUnsigned) text += fmt::format(R"(, "minimum": {})", format.least.value_or(0));
  if (format.most) text += fmt::format(R"(, "maximum": {})", *format.most);
  return text;
}

std::string member_schema(const Member& member) {
  const bool nullable = is_nullable(member);
  std::string text = member.list ? fmt::format(R"("type": {}, "items": {{{}}})", nullable ? R"(["array", "null"])" : R"("array")",
                                               element_schema(member, false))
                                 : element_schema(member, nullable);
  if (!member.meaning.empty()) text += fmt::format(R"(, "description": {})", in_quotes(member.meaning));
  return fmt::format("{}: {{{}}}", in_quotes(member.name), text);
}

std::string member_type(const Member& member) {
  std::string type = member.kind == Kind::kObject     ? std::string(member.object)
                     : !member.format.words.empty()   ? joined_words(member.format.words, " | ")
                     : type_word(member) == "integer" ? "number"
                                                      : type_word(member);
  if (member.list) type = member.format.words.empty() ? type + "[]" : fmt::format("({})[]", type);
  return is_nullable(member) ? type + " | null" : type;
}

}  // namespace

std::string json_schema(std::span<const Component> components, std::string_view indent) {
  std::string text;
  for (const Component& component : components) {
    std::string required, properties;
    for (const Member& member : component.members) {
      if (!member.format.may_be_absent) required += (required.empty() ? "" : ", ") + in_quotes(member.name);
      properties += fmt::format("{}\n{}    {}", properties.empty() ? "" : ",", indent, member_schema(member));
    }
    text += fmt::format("{0}{1}{2}: {{\n{1}  \"type\": \"object\",\n", text.empty() ? "" : ",\n", indent, in_quotes(component.name));
    if (!component.meaning.empty()) text += fmt::format("{}  \"description\": {},\n", indent, in_quotes(component.meaning));
    text += fmt::format("{0}  \"required\": [{1}],\n{0}  \"properties\": {{{2}\n{0}  }}\n{0}}}", indent, required, properties);
  }
  return text;
}

std::string typescript(std::span<const Component> components) {
  std::string text;
  for (const Component& component : components) {
    text += fmt::format("{}/** {} */\nexport interface {} {{\n", text.empty() ? "" : "\n", component.meaning, component.name);
    for (const Member& member : component.members)
      text += fmt::format("  {}{}: {};{}\n", member.name, member.format.may_be_absent ? "?" : "", member_type(member),
                          member.meaning.empty() ? "" : fmt::format(" // {}", member.meaning));
    text += "}\n";
  }
  return text;
}

}  // namespace serin::schema
