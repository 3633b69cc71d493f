#include "runtime/protocol/json/flat_json.h"

#include <fmt/format.h>

#include "runtime/base/base64.h"
#include "runtime/protocol/infer.h"
#include "runtime/protocol/json/json.h"
#include "runtime/protocol/json/json_write.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

Result<FlatValue> value_of(std::string_view key, const dom::element& element) {
  if (element.is_null()) return FlatValue();
  if (bool flag = false; !element.get(flag)) return FlatValue(flag);
  if (int64_t number = 0; !element.get(number)) return FlatValue(number);
  if (std::string_view text; !element.get(text)) return FlatValue(std::string(text));
  dom::array list;
  if (element.get(list)) return invalid(fmt::format("'{}' must be a text, a whole number, true or false, not {}", key, kind_of(element)));
  std::vector<std::string> texts;
  for (const dom::element item : list) {
    std::string_view text;
    if (item.get(text)) return invalid(fmt::format("'{}' must be a list of texts, it has {}", key, kind_of(item)));
    texts.emplace_back(text);
  }
  return FlatValue(std::move(texts));
}

}  // namespace

Result<FlatValues> decode_flat_json(std::string body, std::string_view under) {
  FlatValues values;
  if (body.empty()) return values;
  SERIN_TRY(const Document document, parse_json(body, RequestLimits().json_depth));
  dom::object object;
  if (document.root.get(object)) return invalid(fmt::format("the request must be a JSON object, not {}", kind_of(document.root)));
  if (!under.empty()) {
    dom::element inner;
    if (object[under].get(inner)) return values;
    if (inner.get(object)) return invalid(fmt::format("'{}' must be an object, not {}", under, kind_of(inner)));
  }
  for (const auto [key, element] : object) {
    SERIN_TRY(FlatValue value, value_of(key, element));
    if (!values.emplace(key, std::move(value)).second) return invalid(fmt::format("key '{}' is given twice", key));
  }
  return values;
}

std::string encode_flat_json(const FlatValues& values) {
  std::string out = "{";
  for (const auto& [key, value] : values) {
    if (out.size() > 1) out += ',';
    append_string(out, key);
    out += ':';
    if (const bool* flag = std::get_if<bool>(&value)) {
      out += *flag ? "true" : "false";
    } else if (const int64_t* number = std::get_if<int64_t>(&value)) {
      out += std::to_string(*number);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      append_string(out, *text);
    } else if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
      out += '[';
      for (size_t i = 0; i < list->size(); ++i) append_string(i > 0 ? out += ',' : out, (*list)[i]);
      out += ']';
    } else {
      out += "null";
    }
  }
  return out + "}";
}

Result<std::string> decode_base64_value(std::string_view text, std::string_view name) {
  if (auto bytes = decode_base64(text)) return std::move(*bytes);
  return invalid(fmt::format("'{}' must be base64", name));
}

}  // namespace serin::protocol
