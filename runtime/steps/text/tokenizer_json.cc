// tokenizer_json.cc: Hugging Face's tokenizer.json: the document, its truncation, its padding and its added tokens.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/utf8.h"
#include "runtime/steps/text/json_readers.h"

namespace serin::steps::text {
namespace {

constexpr size_t kNesting = 64;

Result<Truncation> read_truncation(const JsonObject& json) {
  SERIN_CHECK(json.only({"direction", "max_length", "strategy", "stride"}));
  Truncation result;
  SERIN_TRY(const int64_t length, json.integer("max_length"));
  if (length < 0) return json.damaged("max_length", "negative");
  result.max_length = length;
  SERIN_TRY(const std::string strategy, json.text("strategy", "LongestFirst"));
  SERIN_TRY(const std::string direction, json.text("direction", "Right"));
  using Strategy = Truncation::Strategy;
  if (strategy == "OnlyFirst")
    result.strategy = Strategy::kOnlyFirst;
  else if (strategy == "OnlySecond")
    result.strategy = Strategy::kOnlySecond;
  else if (strategy != "LongestFirst")
    return json.unsupported("strategy", fmt::format("'{}' is unknown", strategy));
  if (direction != "Left" && direction != "Right") return json.unsupported("direction", fmt::format("'{}' is unknown", direction));
  result.left = direction == "Left";
  return result;
}

Result<Padding> read_padding(const JsonObject& json) {
  SERIN_CHECK(json.only({"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"}));
  Padding result;
  SERIN_TRY(result.id, json.integer("pad_id"));
  SERIN_TRY(result.type, json.integer("pad_type_id", 0));
  SERIN_TRY(const std::string direction, json.text("direction", "Right"));
  if (direction != "Left" && direction != "Right") return json.unsupported("direction", fmt::format("'{}' is unknown", direction));
  result.left = direction == "Left";
  return result;
}

}  // namespace

/// A token that the vocabulary has keeps its id there. Others follow the vocabulary, as the peer numbers them; a file that says otherwise is refused.
Result<std::vector<AddedToken>> read_added_tokens(const JsonObject& root, const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  if (!root.find("added_tokens")) return tokens;
  SERIN_TRY(const simdjson::dom::array list, root.array("added_tokens"));
  if (list.size() > static_cast<size_t>(kMostTokens)) return root.damaged("added_tokens", fmt::format("more than {}", kMostTokens));
  Vocabulary known;
  auto next_id = static_cast<int64_t>(vocabulary.size());
  for (const auto& element : list) {
    SERIN_TRY(const JsonObject json, JsonObject::of(element, fmt::format("added_tokens[{}]", tokens.size())));
    SERIN_CHECK(json.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
    AddedToken token;
    SERIN_TRY(token.content, json.text("content"));
    SERIN_TRY(token.single_word, json.boolean("single_word"));
    SERIN_TRY(token.strips_left, json.boolean("lstrip"));
    SERIN_TRY(token.strips_right, json.boolean("rstrip"));
    SERIN_TRY(token.normalized, json.boolean("normalized"));
    const auto id = json.find("id");
    if (!id) return json.damaged("id", "missing");
    SERIN_TRY(const int32_t said, read_id(*id, json.place("id")));
    token.id = known.find(token.content);
    if (token.id < 0) token.id = vocabulary.find(token.content);
    if (token.id < 0) token.id = static_cast<int32_t>(std::min(next_id++, kMostTokens - 1));
    if (token.id != said)
      return json.damaged("id", fmt::format("'{}' has {} here, but {} by the vocabulary", utf8_prefix(token.content, 80), said, token.id));
    known.set(token.content, token.id);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

LoadedParts load_tokenizer_json(std::string_view contents) {
  simdjson::dom::parser parser;
  if (parser.allocate(contents.size(), kNesting) != simdjson::SUCCESS) return Error{Code::kTooLarge, "no memory for the file"};
  simdjson::dom::element document;
  if (const auto failure = parser.parse(contents.data(), contents.size(), true).get(document); failure != simdjson::SUCCESS)
    return Error{Code::kCorrupt, fmt::format("not valid JSON: {}", simdjson::error_message(failure))};
  SERIN_TRY(const JsonObject root, JsonObject::of(document, ""));
  SERIN_CHECK(
      root.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"}));
  SERIN_TRY(const std::string version, root.text("version", "1.0"));
  if (version != "1.0") return root.unsupported("version", fmt::format("'{}' is unknown", version));

  auto parts = std::make_unique<TokenizerParts>();
  SERIN_TRY(const JsonObject model, root.object("model"));
  SERIN_TRY(const std::string type, model_type(model));
  PreTokenizing words;
  if (root.find("pre_tokenizer")) {
    SERIN_TRY(const JsonObject json, root.object("pre_tokenizer"));
    SERIN_TRY(words, read_pre_tokenizer(json, type == "BPE"));
  }
  parts->pre_tokenizer = std::move(words.steps);
  SERIN_TRY(parts->model, read_model(model, words.raw_bytes));
  if (root.find("normalizer")) {
    SERIN_TRY(const JsonObject json, root.object("normalizer"));
    SERIN_TRY(parts->normalizer, read_normalizer(json));
  }
  if (root.find("post_processor")) {
    SERIN_TRY(const JsonObject json, root.object("post_processor"));
    SERIN_TRY(parts->around, read_post_processor(json));
  }
  if (root.find("truncation")) {
    SERIN_TRY(const JsonObject json, root.object("truncation"));
    SERIN_TRY(parts->truncation, read_truncation(json));
  }
  SERIN_TRY(auto tokens, read_added_tokens(root, parts->model->vocabulary()));
  SERIN_TRY(parts->added, AddedTokens::make(std::move(tokens), parts->normalizer.get()));
  if (root.find("padding")) {
    SERIN_TRY(const JsonObject json, root.object("padding"));
    SERIN_TRY(parts->padding, read_padding(json));
  } else {
    for (const std::string_view name : {"[PAD]", "<pad>"}) {
      int32_t id = parts->added.find(name);
      if (id < 0) id = parts->model->vocabulary().find(name);
      if (id >= 0) parts->padding.id = id;
    }
  }
  return parts;
}

}  // namespace serin::steps::text
