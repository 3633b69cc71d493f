// schema_text.h: The types of described structs (schema.h) as texts for other languages: JSON Schema, as OpenAPI has it, and TypeScript.
//
//   const auto all = schema::components(kStatus, kTimeline);   // the structs within them, too, each once
//   std::string openapi = schema::json_schema(all, "      "), types = schema::typescript(all);
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/schema_json.h"

namespace serin::schema {

enum class Kind : uint8_t { kBoolean, kInteger, kUnsigned, kNumber, kText, kObject };

struct Member {
  std::string_view name, meaning;
  Kind kind = Kind::kObject;
  bool list = false;
  bool may_be_empty = false;  ///< an optional: null or absent
  std::string_view object;    ///< the name of its type, for kObject
  Format format;
};

/// A described struct without its C++ type.
struct Component {
  std::string_view name, meaning;
  std::vector<Member> members;
};

/// One entry of `components.schemas` for each, without comma and line end after the last one. `indent` precedes each line.
std::string json_schema(std::span<const Component> components, std::string_view indent);
/// One exported interface for each.
std::string typescript(std::span<const Component> components);

template <class Struct, class... Fields>
void add_component(std::vector<Component>& all, const Object<Struct, Fields...>& shape);

template <const auto& kShape, class T>
void describe_value(std::vector<Component>& all, Member& member) {
  if constexpr (kIsOptional<T>) {
    member.may_be_empty = true;
    describe_value<kShape, typename T::value_type>(all, member);
  } else if constexpr (std::same_as<T, bool>) {
    member.kind = Kind::kBoolean;
  } else if constexpr (std::is_enum_v<T>) {
    member.kind = Kind::kText;
    member.format.words = words_of(T{});
  } else if constexpr (Text<T>) {
    member.kind = Kind::kText;
  } else if constexpr (std::floating_point<T>) {
    member.kind = Kind::kNumber;
  } else if constexpr (std::unsigned_integral<T>) {
    member.kind = Kind::kUnsigned;
  } else if constexpr (std::signed_integral<T> || std::same_as<T, std::chrono::milliseconds>) {
    member.kind = Kind::kInteger;
  } else if constexpr (List<T>) {
    member.list = true;
    describe_value<kShape, std::ranges::range_value_t<T>>(all, member);
  } else {
    member.kind = Kind::kObject;
    member.object = kShape.name;
    add_component(all, kShape);
  }
}

template <class Struct, class T, const auto& kShape>
Member describe_member(std::vector<Component>& all, const Field<Struct, T, kShape>& field) {
  Member member{.name = field.name, .meaning = field.meaning, .format = field.format};
  describe_value<kShape, T>(all, member);
  return member;
}

template <class Struct, class... Fields>
void add_component(std::vector<Component>& all, const Object<Struct, Fields...>& shape) {
  for (const Component& known : all)
    if (known.name == shape.name) return;
  const size_t place = all.size();
  all.push_back({.name = shape.name, .meaning = shape.meaning, .members = {}});
  std::apply(
      [&](const Fields&... field) {
        std::vector<Member> members{describe_member(all, field)...};
        all[place].members = std::move(members);
      },
      shape.fields);
}

/// These and every struct within them, in the order in which they are met.
template <class... Shapes>
std::vector<Component> components(const Shapes&... shapes) {
  std::vector<Component> all;
  (add_component(all, shapes), ...);
  return all;
}

}  // namespace serin::schema
