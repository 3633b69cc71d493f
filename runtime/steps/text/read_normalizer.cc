// read_normalizer.cc: "normalizer" of a tokenizer.json.

#include <fmt/format.h>

#include <optional>

#include "runtime/steps/text/json_readers.h"

namespace serin::steps::text {
namespace {

Result<std::unique_ptr<Normalizer>> read_sequence(const JsonObject& json) {
  SERIN_CHECK(json.only({"type", "normalizers"}));
  SERIN_TRY(const simdjson::dom::array list, json.array("normalizers"));
  std::vector<std::unique_ptr<Normalizer>> all;
  for (const auto& element : list) {
    SERIN_TRY(const JsonObject one, JsonObject::of(element, fmt::format("{}[{}]", json.place("normalizers"), all.size())));
    SERIN_TRY(auto normalizer, read_normalizer(one));
    all.push_back(std::move(normalizer));
  }
  return make_normalizers(std::move(all));
}

Result<std::unique_ptr<Normalizer>> read_bert(const JsonObject& json) {
  SERIN_CHECK(json.only({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}));
  BertCleaning rules;
  SERIN_TRY(rules.clean, json.boolean("clean_text"));
  SERIN_TRY(rules.ideographs, json.boolean("handle_chinese_chars"));
  SERIN_TRY(rules.lower_case, json.boolean("lowercase"));
  SERIN_TRY(rules.strip_accents, json.boolean("strip_accents", rules.lower_case));
  return make_bert_normalizer(rules);
}

Result<std::unique_ptr<Normalizer>> read_replace(const JsonObject& json) {
  SERIN_CHECK(json.only({"type", "pattern", "content"}));
  SERIN_TRY(const Pattern pattern, read_pattern(json));
  SERIN_TRY(std::string content, json.text("content"));
  if (!pattern.is_regex) return make_replace(pattern.text, std::move(content));
  SERIN_TRY(Regex regex, at_place(Regex::compile(pattern.text), json.place("pattern")));
  return make_replace(std::move(regex), std::move(content));
}

/// RFC 4648, section 4.
std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

Result<std::unique_ptr<Normalizer>> read_charsmap(const JsonObject& json) {
  SERIN_CHECK(json.only({"type", "precompiled_charsmap"}));
  SERIN_TRY(const std::string coded, json.text("precompiled_charsmap", ""));
  auto table = decode_base64(coded);
  if (!table) return json.damaged("precompiled_charsmap", "not base64");
  return at_place(make_charsmap(*table), json.place("precompiled_charsmap"));
}

}  // namespace

Result<std::unique_ptr<Normalizer>> read_normalizer(const JsonObject& json) {
  SERIN_TRY(const std::string type, json.text("type"));
  if (type == "Sequence") return read_sequence(json);
  if (type == "BertNormalizer") return read_bert(json);
  if (type == "Replace") return read_replace(json);
  if (type == "Precompiled") return read_charsmap(json);
  if (type == "Strip") {
    SERIN_CHECK(json.only({"type", "strip_left", "strip_right"}));
    SERIN_TRY(const bool left, json.boolean("strip_left"));
    SERIN_TRY(const bool right, json.boolean("strip_right"));
    return make_strip(left, right);
  }
  if (type == "Prepend") {
    SERIN_CHECK(json.only({"type", "prepend"}));
    SERIN_TRY(std::string prefix, json.text("prepend"));
    return make_prepend(std::move(prefix));
  }
  SERIN_CHECK(json.only({"type"}));
  if (type == "NFC") return make_form(Form::kNfc);
  if (type == "NFD") return make_form(Form::kNfd);
  if (type == "NFKC") return make_form(Form::kNfkc);
  if (type == "NFKD") return make_form(Form::kNfkd);
  if (type == "Lowercase") return make_lower_case();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Nmt") return make_nmt();
  if (type == "ByteLevel") return make_byte_spelling();
  return json.unsupported("type", fmt::format("the normalizer '{}' is unknown", type));
}

Result<Pattern> read_pattern(const JsonObject& json) {
  SERIN_TRY(const JsonObject pattern, json.object("pattern"));
  SERIN_CHECK(pattern.only({"String", "Regex"}));
  Pattern result;
  result.is_regex = pattern.find("Regex").has_value();
  SERIN_TRY(result.text, pattern.text(result.is_regex ? "Regex" : "String"));
  if (result.text.empty()) return json.damaged("pattern", "an empty pattern");
  return result;
}

}  // namespace serin::steps::text
