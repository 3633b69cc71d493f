// json_object.cc: typed access, with an error for each kind of mistake.

#include "runtime/steps/text/json_object.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/utf8.h"
#include "runtime/steps/text/vocabulary.h"

namespace serin::steps::text {

Result<JsonObject> JsonObject::of(const Element& element, std::string place) {
  JsonObject result;
  if (element.get(result.object_) != simdjson::SUCCESS) return Error{Code::kCorrupt, fmt::format("{}: an object is expected", place)};
  result.place_ = std::move(place);
  return result;
}

Status JsonObject::only(std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, value] : object_)
    if (std::ranges::find(keys, key) == keys.end()) return unsupported(utf8_prefix(key, 80), "unknown here");
  return {};
}

std::optional<JsonObject::Element> JsonObject::find(std::string_view key) const {
  for (const auto& [name, value] : object_)
    if (name == key) return value.is_null() ? std::nullopt : std::optional(value);
  return std::nullopt;
}

template <class T>
Result<T> JsonObject::scalar(std::string_view key, const std::optional<T>& fallback, std::string_view kind) const {
  const auto value = find(key);
  if (!value) {
    if (fallback) return *fallback;
    return damaged(key, "missing");
  }
  T result{};
  if (value->get(result) != simdjson::SUCCESS) return damaged(key, fmt::format("{} is expected", kind));
  return result;
}

Result<std::string> JsonObject::text(std::string_view key, std::optional<std::string> fallback) const {
  if (!find(key) && fallback) return std::move(*fallback);
  SERIN_TRY(const std::string_view found, scalar<std::string_view>(key, std::nullopt, "a string"));
  return std::string(found);
}

Result<bool> JsonObject::boolean(std::string_view key, std::optional<bool> fallback) const {
  return scalar(key, fallback, "true or false");
}
Result<int64_t> JsonObject::integer(std::string_view key, std::optional<int64_t> fallback) const {
  return scalar(key, fallback, "an integer");
}

Result<simdjson::dom::array> JsonObject::array(std::string_view key) const {
  return scalar<simdjson::dom::array>(key, std::nullopt, "an array");
}

Result<JsonObject> JsonObject::object(std::string_view key) const {
  const auto value = find(key);
  if (!value) return damaged(key, "missing");
  return of(*value, place(key));
}

std::string JsonObject::place(std::string_view key) const {
  if (key.empty()) return place_;
  return place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
}

Error JsonObject::damaged(std::string_view key, std::string_view what) const {
  return {Code::kCorrupt, fmt::format("{}: {}", place(key), what)};
}

Error JsonObject::unsupported(std::string_view key, std::string_view what) const {
  return {Code::kUnsupported, fmt::format("{}: {}", place(key), what)};
}

Result<int32_t> read_id(const simdjson::dom::element& element, const std::string& place) {
  int64_t id = 0;
  if (element.get(id) != simdjson::SUCCESS) return Error{Code::kCorrupt, fmt::format("{}: an id is expected", place)};
  if (id < 0 || id >= kMostTokens)
    return Error{Code::kCorrupt, fmt::format("{}: the id {} is not between 0 and {}", place, id, kMostTokens - 1)};
  return static_cast<int32_t>(id);
}

}  // namespace serin::steps::text
