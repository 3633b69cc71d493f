// json_object.h: an object of a JSON file with its place in it, for errors that say where: "pre_tokenizer.pretokenizers[1].behavior: ...".
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::steps::text {

/// A view: the parsed document outlives it. Null counts as absent.
class JsonObject {
 public:
  using Element = simdjson::dom::element;

  static Result<JsonObject> of(const Element& element, std::string place);

  /// Refuses all other keys, because each changes what the ids are.
  Status only(std::initializer_list<std::string_view> keys) const;

  std::optional<Element> find(std::string_view key) const;
  // Without a fallback the key is required.
  Result<std::string> text(std::string_view key, std::optional<std::string> fallback = std::nullopt) const;
  Result<bool> boolean(std::string_view key, std::optional<bool> fallback = std::nullopt) const;
  Result<int64_t> integer(std::string_view key, std::optional<int64_t> fallback = std::nullopt) const;
  Result<simdjson::dom::array> array(std::string_view key) const;
  Result<JsonObject> object(std::string_view key) const;

  /// "place.key", or the place itself.
  std::string place(std::string_view key = {}) const;
  Error damaged(std::string_view key, std::string_view what) const;      ///< kCorrupt
  Error unsupported(std::string_view key, std::string_view what) const;  ///< kUnsupported

  const simdjson::dom::object& members() const { return object_; }

 private:
  template <class T>
  Result<T> scalar(std::string_view key, const std::optional<T>& fallback, std::string_view kind) const;

  simdjson::dom::object object_;
  std::string place_;
};

/// An id of a file: from 0 to kMostTokens - 1.
Result<int32_t> read_id(const simdjson::dom::element& element, const std::string& place);

}  // namespace serin::steps::text
