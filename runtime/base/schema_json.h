// schema_json.h: Writes described structs (schema.h) as JSON, on one line and without spaces. Numbers that are not finite become 0.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/base/json_quote.h"
#include "runtime/base/schema.h"

namespace serin::schema {

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
concept Text = std::convertible_to<T, std::string_view>;
template <class T>
concept List = std::ranges::range<T> && !Text<T>;

void append_number(std::string& out, double value, const Format& format);
void append_integer(std::string& out, int64_t value);
void append_integer(std::string& out, uint64_t value);

template <class Struct, class... Fields>
void append_json(std::string& out, const Object<Struct, Fields...>& shape, const Struct& value);

template <const auto& kShape, class T>
void append_value(std::string& out, const T& value, const Format& format) {
  if constexpr (kIsOptional<T>) {
    if (value)
      append_value<kShape>(out, *value, format);
    else
      out += "null";
  } else if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    append_json_quoted(out, words_of(value)[static_cast<size_t>(value)]);
  } else if constexpr (Text<T>) {
    append_json_quoted(out, value);
  } else if constexpr (std::floating_point<T>) {
    append_number(out, value, format);
  } else if constexpr (std::signed_integral<T>) {
    append_integer(out, static_cast<int64_t>(value));
  } else if constexpr (std::unsigned_integral<T>) {
    append_integer(out, static_cast<uint64_t>(value));
  } else if constexpr (std::same_as<T, std::chrono::milliseconds>) {
    append_integer(out, static_cast<int64_t>(value.count()));
  } else if constexpr (List<T>) {
    out += '[';
    for (const auto& item : value) {
      if (out.back() != '[') out += ',';
      append_value<kShape>(out, item, format);
    }
    out += ']';
  } else {
    append_json(out, kShape, value);
  }
}

template <class Value, class Struct, class T, const auto& kShape>
void append_member(std::string& out, const Field<Struct, T, kShape>& field, const Value& of) {
  const T& value = of.*field.member;
  if constexpr (kIsOptional<T>) {
    if (!value && field.format.may_be_absent) return;
  }
  if (out.back() != '{') out += ',';
  append_json_quoted(out, field.name);
  out += ':';
  append_value<kShape>(out, value, field.format);
}

template <class Struct, class... Fields>
void append_json(std::string& out, const Object<Struct, Fields...>& shape, const Struct& value) {
  out += '{';
  std::apply([&](const Fields&... field) { (append_member(out, field, value), ...); }, shape.fields);
  out += '}';
}

template <class Struct, class... Fields>
std::string to_json(const Object<Struct, Fields...>& shape, const std::type_identity_t<Struct>& value) {
  std::string out;
  append_json(out, shape, value);
  return out;
}

}  // namespace serin::schema
