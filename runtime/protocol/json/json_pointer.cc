#include "runtime/protocol/json/json_pointer.h"

#include <simdjson.h>

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
  std::string padded;
};

JsonPointerReader::JsonPointerReader() = default;
JsonPointerReader::JsonPointerReader(JsonPointerReader&&) noexcept = default;
JsonPointerReader& JsonPointerReader::operator=(JsonPointerReader&&) noexcept = default;
JsonPointerReader::~JsonPointerReader() = default;

std::string JsonPointerReader::read(std::string_view json, std::string_view pointer) {
  if (json.empty()) return "";
  if (!state_) state_ = std::make_unique<State>();
  state_->padded.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  state_->padded.assign(json);
  ondemand::document document;
  ondemand::value value;
  if (state_->parser.iterate(state_->padded.data(), json.size(), state_->padded.capacity()).get(document)) return "";
  if (document.at_pointer(pointer).get(value)) return "";
  return text_of(value);
}

}  // namespace serin::protocol
