// read_pre_tokenizer.cc: "pre_tokenizer" of a tokenizer.json.

#include <fmt/format.h>

#include <array>

#include "runtime/steps/text/json_readers.h"
#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

Result<Behavior> read_behavior(const JsonObject& json, std::optional<std::string> fallback) {
  SERIN_TRY(const std::string name, json.text("behavior", std::move(fallback)));
  constexpr std::array<std::pair<std::string_view, Behavior>, 5> kNames = {{{"Removed", Behavior::kRemoved},
                                                                            {"Isolated", Behavior::kIsolated},
                                                                            {"MergedWithPrevious", Behavior::kMergedWithPrevious},
                                                                            {"MergedWithNext", Behavior::kMergedWithNext},
                                                                            {"Contiguous", Behavior::kContiguous}}};
  for (const auto& [known, behavior] : kNames)
    if (name == known) return behavior;
  return json.unsupported("behavior", fmt::format("'{}' is unknown", name));
}

class PreTokenizerReader {
 public:
  explicit PreTokenizerReader(bool model_takes_bytes) : model_takes_bytes_(model_takes_bytes) {}

  Result<std::unique_ptr<PreTokenizer>> read(const JsonObject& json, bool last) {
    SERIN_TRY(const std::string type, json.text("type"));
    if (type == "Sequence") return sequence(json, last);
    if (type == "ByteLevel") return byte_level(json, last);
    if (type == "Metaspace") return metaspace(json);
    if (type == "Split") return split(json);
    if (type == "Punctuation") {
      SERIN_CHECK(json.only({"type", "behavior"}));
      SERIN_TRY(const Behavior behavior, read_behavior(json, "Isolated"));
      return make_punctuation(behavior);
    }
    if (type == "Digits") {
      SERIN_CHECK(json.only({"type", "individual_digits"}));
      SERIN_TRY(const bool alone, json.boolean("individual_digits", false));
      return make_digits(alone);
    }
    SERIN_CHECK(json.only({"type"}));
    if (type == "BertPreTokenizer") return make_bert_splitter();
    if (type == "Whitespace") return make_whitespace();
    if (type == "WhitespaceSplit") return make_whitespace_split();
    return json.unsupported("type", fmt::format("the pre-tokenizer '{}' is unknown", type));
  }

  bool raw_bytes() const { return raw_bytes_; }

 private:
  Result<std::unique_ptr<PreTokenizer>> sequence(const JsonObject& json, bool last) {
    SERIN_CHECK(json.only({"type", "pretokenizers"}));
    SERIN_TRY(const simdjson::dom::array list, json.array("pretokenizers"));
    std::vector<std::unique_ptr<PreTokenizer>> all;
    for (const auto& element : list) {
      SERIN_TRY(const JsonObject one, JsonObject::of(element, fmt::format("{}[{}]", json.place("pretokenizers"), all.size())));
      SERIN_TRY(auto step, read(one, last && all.size() + 1 == list.size()));
      all.push_back(std::move(step));
    }
    return make_pre_tokenizers(std::move(all));
  }

  Result<std::unique_ptr<PreTokenizer>> byte_level(const JsonObject& json, bool last) {
    SERIN_CHECK(json.only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    ByteLevelRules rules;
    SERIN_TRY(rules.add_prefix_space, json.boolean("add_prefix_space"));
    SERIN_TRY(rules.use_regex, json.boolean("use_regex", true));
    raw_bytes_ = last && model_takes_bytes_ && !spelled_;
    rules.spell = !raw_bytes_;
    spelled_ = spelled_ || rules.spell;
    return make_byte_level(rules);
  }

  static Result<std::unique_ptr<PreTokenizer>> metaspace(const JsonObject& json) {
    SERIN_CHECK(json.only({"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"}));
    SERIN_TRY(std::string mark, json.text("replacement"));
    if (mark.empty() || count_chars(mark) != 1) return json.damaged("replacement", "one character is expected");
    SERIN_TRY(const std::string scheme, json.text("prepend_scheme", "always"));
    SERIN_TRY(const bool prefix, json.boolean("add_prefix_space", true));
    SERIN_TRY(const bool cut, json.boolean("split", true));
    constexpr std::array<std::pair<std::string_view, Prepend>, 3> kSchemes = {
        {{"always", Prepend::kAlways}, {"first", Prepend::kFirst}, {"never", Prepend::kNever}}};
    for (const auto& [name, prepend] : kSchemes)
      if (name == scheme) return make_metaspace(std::move(mark), prefix ? prepend : Prepend::kNever, cut);
    return json.unsupported("prepend_scheme", fmt::format("'{}' is unknown", scheme));
  }

  static Result<std::unique_ptr<PreTokenizer>> split(const JsonObject& json) {
    SERIN_CHECK(json.only({"type", "pattern", "behavior", "invert"}));
    SERIN_TRY(const Pattern pattern, read_pattern(json));
    SERIN_TRY(const Behavior behavior, read_behavior(json, std::nullopt));
    SERIN_TRY(const bool invert, json.boolean("invert"));
    if (!pattern.is_regex) return make_split(pattern.text, behavior, invert);
    SERIN_TRY(Regex regex, at_place(Regex::compile(pattern.text), json.place("pattern")));
    return make_split(std::move(regex), behavior, invert);
  }

  bool model_takes_bytes_;
  bool raw_bytes_ = false;
  bool spelled_ = false;
};

}  // namespace

Result<PreTokenizing> read_pre_tokenizer(const JsonObject& json, bool model_takes_bytes) {
  PreTokenizerReader reader(model_takes_bytes);
  PreTokenizing result;
  SERIN_TRY(result.steps, reader.read(json, true));
  result.raw_bytes = reader.raw_bytes();
  return result;
}

}  // namespace serin::steps::text
