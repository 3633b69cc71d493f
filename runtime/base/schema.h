// schema.h: Describes the members of a plain struct once. Its JSON, its JSON Schema and its TypeScript type are made from that.
//
//   struct Evidence { std::string guard; double bits = 0; std::optional<double> left; };
//   inline constexpr auto kEvidence = schema::object<Evidence>(
//       "Evidence", "Evidence of one guard against the canary.",
//       schema::field("guard", &Evidence::guard, "Its name."),
//       schema::field("bits", &Evidence::bits, "log2 of the e-value.", {.digits = 4}),
//       schema::field("left", &Evidence::left, "Seconds until it trips; null: unknown."));
//
//   struct Report { std::vector<Evidence> evidence; };
//   inline constexpr auto kReport = schema::object<Report>(
//       "Report", "All evidence.", schema::field<kEvidence>("evidence", &Report::evidence, "One for each guard."));
//
//   std::string json = schema::to_json(kReport, report);           // schema_json.h
//   std::vector<schema::Component> all = schema::components(kReport);   // schema_text.h: texts for other languages
//
// A description is a constant outside of the struct, so that a domain type need not know the wire, and one struct may have two descriptions.
// A member is a bool, a number, a text, milliseconds, an enum, a described struct, or a std::optional or list of these. An enum has a function
// `words_of(E)` in its namespace, which returns the word of each value in order. JSON has the members in the order of the description.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>

namespace serin::schema {

/// How a value is written, and which values there are.
struct Format {
  int digits = 0;     ///< significant digits of a double; 0: as many as it needs
  int decimals = -1;  ///< digits of a double after the point; -1: `digits` counts
  /// An optional without a value is left out of the object; otherwise it is null.
  bool may_be_absent = false;
  std::optional<double> least, most;
  std::string_view kind;                    ///< `format` of JSON Schema, such as "date-time"
  std::span<const std::string_view> words;  ///< of a text: the only ones there are
};

/// Stands for the description of values that are no structs.
struct NoShape {};
inline constexpr NoShape kNoShape;

template <class Struct, class T, const auto& kShape>
struct Field {
  std::string_view name;
  T Struct::* member;
  std::string_view meaning;  ///< one or two sentences for users
  Format format;
};

template <class Struct, class... Fields>
struct Object {
  std::string_view name;  ///< of the type in other languages, unique in an API
  std::string_view meaning;
  std::tuple<Fields...> fields;
};

/// `kShape` describes the struct that the member is, or contains as optional or list.
template <const auto& kShape = kNoShape, class Struct, class T>
constexpr Field<Struct, T, kShape> field(std::string_view name, T Struct::* member, std::string_view meaning, const Format& format = {}) {
  return {name, member, meaning, format};
}

template <class Struct, class... Fields>
constexpr Object<Struct, Fields...> object(std::string_view name, std::string_view meaning, const Fields&... fields) {
  return {name, meaning, {fields...}};
}

/// Of a struct that is derived from a described one: `fields`, then those of the base.
template <class Struct, class Base, class... Inherited, class... Fields>
  requires std::derived_from<Struct, Base>
constexpr Object<Struct, Fields..., Inherited...> extended(std::string_view name, std::string_view meaning,
                                                           const Object<Base, Inherited...>& base, const Fields&... fields) {
  return {name, meaning, std::tuple_cat(std::tuple(fields...), base.fields)};
}

/// The same description, but with every digit that the numbers right in it have.
template <class Struct, class... Fields>
constexpr Object<Struct, Fields...> with_every_digit(Object<Struct, Fields...> shape) {
  std::apply([](auto&... field) { ((field.format.digits = 0, field.format.decimals = -1), ...); }, shape.fields);
  return shape;
}

}  // namespace serin::schema
