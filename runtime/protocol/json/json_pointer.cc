#include "runtime/protocol/json/json_pointer.h"

#include <simdjson.h>

#include <algorithm>

namespace serin::protocol {
namespace {

namespace ondemand = simdjson::ondemand;

std::string trimmed(std::string_view token) {
  const size_t end = token.find_last_not_of(" \t\r\n");
  return std::string(token.substr(0, end == std::string_view::npos ? 0 : end + 1));
}

std::string text_of(ondemand::value value) {
  ondemand::json_type type{};
  if (value.type().get(type)) return "";
  if (type == ondemand::json_type::string) {
    std::string_view text;
    return value.get_string().get(text) ? "" : std::string(text);
  }
  if (type == ondemand::json_type::boolean) {
    bool flag = false;
    if (value.get_bool().get(flag)) return "";
    return flag ? "true" : "false";
  }
  double number = 0;  // only to see that it is one
  if (type != ondemand::json_type::number) return "";
  std::string token = trimmed(value.raw_json_token());
  return value.get_double().get(number) ? "" : token;
}

}  // namespace

struct JsonPointerReader::State {
  ondemand::parser parser;
  simdjson::dom::parser whole;  // the other one does not look at what it skips
  std::string padded;

  /// False: not JSON.
  bool begin(std::string_view json, ondemand::document& document) {
    padded.reserve(json.size() + simdjson::SIMDJSON_PADDING);
    padded.assign(json);
    return parser.iterate(padded.data(), json.size(), padded.capacity()).get(document) == simdjson::SUCCESS;
  }
};

namespace {

struct Replacement {
  size_t at, size;
  std::string_view by;
};

/// Finds the values to replace, in their order.
struct Redactor {
  const std::vector<std::string>& pointers;
  const char* begin;
  std::vector<Replacement> found;

  bool is_wanted(const std::string& place) const { return std::ranges::find(pointers, place) != pointers.end(); }
  bool leads_to_one(const std::string& place) const {
    return std::ranges::any_of(pointers, [&](const std::string& pointer) { return pointer.starts_with(place + '/'); });
  }
  void replace(std::string_view text, std::string_view by) { found.push_back({static_cast<size_t>(text.data() - begin), text.size(), by}); }

  /// Each returns false where the document is not JSON.
  bool look(ondemand::value value, const std::string& place) {
    if (is_wanted(place)) return remove(value);
    ondemand::json_type type{};
    if (!leads_to_one(place)) return true;
    if (value.type().get(type)) return false;
    return type == ondemand::json_type::object  ? look_into(value.get_object(), place)
           : type == ondemand::json_type::array ? look_into(value.get_array(), place)
                                                : true;
  }

  bool look_into(simdjson::simdjson_result<ondemand::object> result, const std::string& place) {
    ondemand::object object;
    if (std::move(result).get(object)) return false;
    for (auto each : object) {
      ondemand::field field;
      std::string_view name;
      if (std::move(each).get(field) || field.unescaped_key().get(name)) return false;
      std::string inner = place + '/';
      for (const char c : name) inner += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
      if (!look(field.value(), inner)) return false;
    }
    return true;
  }

  bool look_into(simdjson::simdjson_result<ondemand::array> result, const std::string& place) {
    ondemand::array array;
    if (std::move(result).get(array)) return false;
    size_t index = 0;
    for (auto each : array) {
      ondemand::value value;
      if (std::move(each).get(value) || !look(value, place + '/' + std::to_string(index++))) return false;
    }
    return true;
  }

  static simdjson::simdjson_result<std::string_view> object_text(ondemand::value value) {
    ondemand::object object;
    if (const auto error = value.get_object().get(object)) return error;
    return object.raw_json();
  }
  static simdjson::simdjson_result<std::string_view> array_text(ondemand::value value) {
    ondemand::array array;
    if (const auto error = value.get_array().get(array)) return error;
    return array.raw_json();
  }

  bool remove(ondemand::value value) {
    ondemand::json_type type{};
    std::string_view text;
    if (value.type().get(type)) return false;
    switch (type) {
      case ondemand::json_type::object:
        if (object_text(value).get(text)) return false;
        replace(text, "{}");
        return true;
      case ondemand::json_type::array:
        if (array_text(value).get(text)) return false;
        replace(text, "[]");
        return true;
      default: break;
    }
    text = value.raw_json_token();
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    replace(text, type == ondemand::json_type::string ? "\"\"" : type == ondemand::json_type::number ? "0" : "false");
    return type != ondemand::json_type::null || (found.pop_back(), true);
  }
};

}  // namespace

JsonPointerReader::JsonPointerReader() = default;
JsonPointerReader::JsonPointerReader(JsonPointerReader&&) noexcept = default;
JsonPointerReader& JsonPointerReader::operator=(JsonPointerReader&&) noexcept = default;
JsonPointerReader::~JsonPointerReader() = default;

std::string JsonPointerReader::read(std::string_view json, std::string_view pointer) {
  if (json.empty()) return "";
  if (!state_) state_ = std::make_unique<State>();
  ondemand::document document;
  ondemand::value value;
  if (!state_->begin(json, document) || document.at_pointer(pointer).get(value)) return "";
  return text_of(value);
}

std::optional<std::string> JsonPointerReader::redact(std::string_view json, const std::vector<std::string>& pointers) {
  if (!state_) state_ = std::make_unique<State>();
  ondemand::document document;
  ondemand::value root;
  if (json.empty() || !state_->begin(json, document) || state_->whole.parse(state_->padded.data(), json.size(), false).error())
    return std::nullopt;
  if (document.get_value().get(root)) return std::string(json);  // a number or a text alone
  Redactor redactor{pointers, state_->padded.data(), {}};
  if (!redactor.look(root, "")) return std::nullopt;
  std::string text;
  size_t done = 0;
  for (const Replacement& each : redactor.found) {
    text.append(json, done, each.at - done);
    text += each.by;
    done = each.at + each.size;
  }
  return text.append(json, done);
}

}  // namespace serin::protocol
