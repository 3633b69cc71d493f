// read_model.cc: "model" of a tokenizer.json.

#include <fmt/format.h>

#include "runtime/steps/text/json_readers.h"

namespace serin::steps::text {
namespace {

Result<Vocabulary> read_vocabulary(const JsonObject& json) {
  SERIN_TRY(const JsonObject vocab, json.object("vocab"));
  Vocabulary vocabulary;
  if (vocab.members().size() > static_cast<size_t>(kMostTokens)) return vocab.damaged("", fmt::format("more than {} tokens", kMostTokens));
  vocabulary.reserve(vocab.members().size(), 0);
  for (const auto& [token, value] : vocab.members()) {
    SERIN_TRY(const int32_t id, read_id(value, vocab.place(token)));
    vocabulary.set(token, id);
  }
  return vocabulary;
}

Result<std::unique_ptr<Model>> read_word_piece(const JsonObject& json) {
  SERIN_CHECK(json.only({"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}));
  WordPieceRules rules;
  SERIN_TRY(rules.unknown, json.text("unk_token"));
  SERIN_TRY(rules.continuing, json.text("continuing_subword_prefix"));
  SERIN_TRY(rules.most_chars, json.integer("max_input_chars_per_word"));
  SERIN_TRY(Vocabulary vocabulary, read_vocabulary(json));
  return at_place(make_word_piece(std::move(vocabulary), rules), json.place());
}

/// ["a", "b"], or in older files "a b".
Result<std::pair<std::string, std::string>> read_merge(const simdjson::dom::element& merge, const std::string& place) {
  std::string_view both, left, right;
  simdjson::dom::array parts;
  if (merge.get(both) == simdjson::SUCCESS) {
    const size_t space = both.find(' ');
    if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos)
      return Error{Code::kCorrupt, fmt::format("{}: two tokens with a space between are expected", place)};
    return std::pair(std::string(both.substr(0, space)), std::string(both.substr(space + 1)));
  }
  if (merge.get(parts) == simdjson::SUCCESS && parts.size() == 2 && parts.at(0).get(left) == simdjson::SUCCESS &&
      parts.at(1).get(right) == simdjson::SUCCESS)
    return std::pair(std::string(left), std::string(right));
  return Error{Code::kCorrupt, fmt::format("{}: two tokens are expected", place)};
}

Result<std::unique_ptr<Model>> read_bpe(const JsonObject& json, bool raw_bytes) {
  SERIN_CHECK(json.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
                         "ignore_merges", "vocab", "merges"}));
  double dropout = 0;
  if (const auto value = json.find("dropout"); value && (value->get(dropout) != simdjson::SUCCESS || dropout != 0))
    return json.unsupported("dropout", "a random choice of merges; it must be null");
  BpeRules rules;
  rules.raw_bytes = raw_bytes;
  SERIN_TRY(rules.unknown, json.text("unk_token", ""));
  SERIN_TRY(rules.continuing, json.text("continuing_subword_prefix", ""));
  SERIN_TRY(rules.ending, json.text("end_of_word_suffix", ""));
  SERIN_TRY(rules.fuse_unknown, json.boolean("fuse_unk", false));
  SERIN_TRY(rules.byte_fallback, json.boolean("byte_fallback", false));
  SERIN_TRY(rules.ignore_merges, json.boolean("ignore_merges", false));
  if (raw_bytes && rules.byte_fallback) return json.unsupported("byte_fallback", "it is not supported together with ByteLevel");
  SERIN_TRY(const simdjson::dom::array merges, json.array("merges"));
  if (merges.size() > static_cast<size_t>(kMostTokens)) return json.damaged("merges", fmt::format("more than {}", kMostTokens));
  rules.merges.reserve(merges.size());
  for (const auto& merge : merges) {
    SERIN_TRY(auto pair, read_merge(merge, fmt::format("{}[{}]", json.place("merges"), rules.merges.size())));
    rules.merges.push_back(std::move(pair));
  }
  SERIN_TRY(Vocabulary vocabulary, read_vocabulary(json));
  return at_place(make_bpe(std::move(vocabulary), std::move(rules)), json.place());
}

Result<std::unique_ptr<Model>> read_unigram(const JsonObject& json) {
  SERIN_CHECK(json.only({"type", "unk_id", "vocab", "byte_fallback"}));
  UnigramRules rules;
  SERIN_TRY(const int64_t unknown, json.integer("unk_id", -1));
  if (unknown < -1 || unknown >= kMostTokens) return json.damaged("unk_id", fmt::format("{} is no id", unknown));
  rules.unknown = static_cast<int32_t>(unknown);
  SERIN_TRY(rules.byte_fallback, json.boolean("byte_fallback", false));
  SERIN_TRY(const simdjson::dom::array list, json.array("vocab"));
  if (list.size() > static_cast<size_t>(kMostTokens)) return json.damaged("vocab", fmt::format("more than {} tokens", kMostTokens));
  for (const auto& element : list) {
    simdjson::dom::array entry;
    std::string_view token;
    double score = 0;
    if (element.get(entry) != simdjson::SUCCESS || entry.size() != 2 || entry.at(0).get(token) != simdjson::SUCCESS ||
        entry.at(1).get(score) != simdjson::SUCCESS)
      return json.damaged(fmt::format("vocab[{}]", rules.tokens.size()), "a token and its score are expected");
    rules.tokens.emplace_back(token);
    rules.scores.push_back(score);
  }
  return at_place(make_unigram(std::move(rules)), json.place());
}

}  // namespace

Result<std::string> model_type(const JsonObject& json) {
  SERIN_TRY(std::string type, json.text("type", ""));
  if (!type.empty()) return type;
  if (json.find("merges")) return std::string("BPE");
  if (json.find("continuing_subword_prefix")) return std::string("WordPiece");
  return json.damaged("type", "missing");
}

Result<std::unique_ptr<Model>> read_model(const JsonObject& json, bool raw_bytes) {
  SERIN_TRY(const std::string type, model_type(json));
  if (type == "WordPiece") return read_word_piece(json);
  if (type == "BPE") return read_bpe(json, raw_bytes);
  if (type == "Unigram") return read_unigram(json);
  return json.unsupported("type", fmt::format("the model '{}' is unknown", type));
}

}  // namespace serin::steps::text
