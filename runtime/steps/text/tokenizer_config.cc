// tokenizer_config.cc: a token is a string or {"content": "..."}.

#include "runtime/steps/text/tokenizer_config.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "runtime/steps/text/json_object.h"

namespace serin::steps::text {
namespace {

Result<std::optional<std::string>> read_token(const JsonObject& json, std::string_view key) {
  const auto value = json.find(key);
  if (!value) return std::optional<std::string>();
  if (!value->is_object()) {
    SERIN_TRY(std::string token, json.text(key));
    return std::optional(std::move(token));
  }
  SERIN_TRY(const JsonObject inner, json.object(key));
  SERIN_TRY(std::string token, inner.text("content"));
  return std::optional(std::move(token));
}

}  // namespace

Result<TokenizerConfig> TokenizerConfig::read(std::string_view contents) {
  TokenizerConfig config;
  if (contents.empty()) return config;
  constexpr size_t kNesting = 64;
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  if (parser.allocate(contents.size(), kNesting) != simdjson::SUCCESS) return Error{Code::kTooLarge, "no memory for tokenizer_config.json"};
  if (const auto failure = parser.parse(contents.data(), contents.size(), true).get(document); failure != simdjson::SUCCESS)
    return Error{Code::kCorrupt, fmt::format("tokenizer_config.json: not valid JSON: {}", simdjson::error_message(failure))};
  SERIN_TRY(const JsonObject json, JsonObject::of(document, "tokenizer_config.json"));
  const std::array<std::pair<std::string_view, std::optional<bool>*>, 5> switches = {{{"do_lower_case", &config.lower_case},
                                                                                      {"strip_accents", &config.strip_accents},
                                                                                      {"tokenize_chinese_chars", &config.split_ideographs},
                                                                                      {"add_bos_token", &config.add_bos},
                                                                                      {"add_eos_token", &config.add_eos}}};
  for (const auto& [key, value] : switches) {
    if (!json.find(key)) continue;
    SERIN_TRY(*value, json.boolean(key));
  }
  const std::array<std::pair<std::string_view, std::optional<std::string>*>, 7> tokens = {{{"unk_token", &config.unknown},
                                                                                           {"sep_token", &config.separator},
                                                                                           {"pad_token", &config.padding},
                                                                                           {"cls_token", &config.classification},
                                                                                           {"mask_token", &config.mask},
                                                                                           {"bos_token", &config.begin},
                                                                                           {"eos_token", &config.end}}};
  for (const auto& [key, value] : tokens) {
    SERIN_TRY(*value, read_token(json, key));
  }
  if (json.find("tokenizer_class")) {
    SERIN_TRY(config.python_class, json.text("tokenizer_class"));
  }
  return config;
}

}  // namespace serin::steps::text
