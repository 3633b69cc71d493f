// read_post_processor.cc: "post_processor" of a tokenizer.json becomes a template. Offsets are not reported, so what only changes these does nothing.

#include <fmt/format.h>

#include "runtime/steps/text/json_readers.h"

namespace serin::steps::text {
namespace {

using StepKind = TemplateStep::Kind;

/// ["[SEP]", 102]
Result<int32_t> read_named_id(const JsonObject& json, std::string_view key) {
  SERIN_TRY(const simdjson::dom::array entry, json.array(key));
  std::string_view name;
  if (entry.size() != 2 || entry.at(0).get(name) != simdjson::SUCCESS) return json.damaged(key, "a token and its id are expected");
  return read_id(entry.at(1).value_unsafe(), json.place(key));
}

Result<Template> read_bert_template(const JsonObject& json) {
  SERIN_CHECK(json.only({"type", "sep", "cls"}));
  SERIN_TRY(const int32_t sep, read_named_id(json, "sep"));
  SERIN_TRY(const int32_t cls, read_named_id(json, "cls"));
  Template result;
  result.single = {{StepKind::kSpecial, 0, {cls}}, {StepKind::kFirst, 0, {}}, {StepKind::kSpecial, 0, {sep}}};
  result.pair = result.single;
  result.pair.push_back({StepKind::kSecond, 1, {}});
  result.pair.push_back({StepKind::kSpecial, 1, {sep}});
  return result;
}

Result<Template> read_roberta_template(const JsonObject& json) {
  SERIN_CHECK(json.only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
  SERIN_TRY(const int32_t sep, read_named_id(json, "sep"));
  SERIN_TRY(const int32_t cls, read_named_id(json, "cls"));
  Template result;
  result.single = {{StepKind::kSpecial, 0, {cls}}, {StepKind::kFirst, 0, {}}, {StepKind::kSpecial, 0, {sep}}};
  result.pair = result.single;
  result.pair.push_back({StepKind::kSpecial, 0, {sep}});
  result.pair.push_back({StepKind::kSecond, 0, {}});
  result.pair.push_back({StepKind::kSpecial, 0, {sep}});
  return result;
}

Result<std::vector<int32_t>> read_special(const JsonObject& json, const std::string& id) {
  SERIN_TRY(const JsonObject tokens, json.object("special_tokens"));
  SERIN_TRY(const JsonObject token, tokens.object(id));
  SERIN_TRY(const simdjson::dom::array list, token.array("ids"));
  std::vector<int32_t> ids;
  for (const auto& element : list) {
    SERIN_TRY(const int32_t one, read_id(element, token.place("ids")));
    ids.push_back(one);
  }
  return ids;
}

/// One of {"Sequence": {"id": "A", "type_id": 0}} and {"SpecialToken": {"id": "[CLS]", "type_id": 0}}.
Result<TemplateStep> read_step(const JsonObject& json, const simdjson::dom::element& element, const std::string& place) {
  SERIN_TRY(const JsonObject piece, JsonObject::of(element, place));
  SERIN_CHECK(piece.only({"Sequence", "SpecialToken"}));
  const bool special = piece.find("SpecialToken").has_value();
  SERIN_TRY(const JsonObject inner, piece.object(special ? "SpecialToken" : "Sequence"));
  SERIN_TRY(const std::string id, inner.text("id"));
  TemplateStep step;
  SERIN_TRY(step.type, inner.integer("type_id"));
  if (special) {
    step.kind = StepKind::kSpecial;
    SERIN_TRY(step.ids, read_special(json, id));
    return step;
  }
  if (id != "A" && id != "B") return inner.unsupported("id", fmt::format("the sequence '{}' is unknown", id));
  step.kind = id == "A" ? StepKind::kFirst : StepKind::kSecond;
  return step;
}

Result<std::vector<TemplateStep>> read_steps(const JsonObject& json, std::string_view key, size_t texts) {
  SERIN_TRY(const simdjson::dom::array list, json.array(key));
  std::vector<TemplateStep> steps;
  size_t seen[2] = {};
  for (const auto& element : list) {
    SERIN_TRY(auto step, read_step(json, element, fmt::format("{}[{}]", json.place(key), steps.size())));
    if (step.kind != StepKind::kSpecial) ++seen[step.kind == StepKind::kSecond];
    steps.push_back(std::move(step));
  }
  if (seen[0] != 1 || seen[1] != texts - 1)
    return json.unsupported(key, texts == 1 ? "it must have the first text once, and no second one" : "it must have both texts, each once");
  return steps;
}

Result<Template> read_template(const JsonObject& json) {
  SERIN_CHECK(json.only({"type", "single", "pair", "special_tokens"}));
  Template result;
  SERIN_TRY(result.single, read_steps(json, "single", 1));
  SERIN_TRY(result.pair, read_steps(json, "pair", 2));
  return result;
}

/// Nothing: it changes offsets only.
Result<std::optional<Template>> read_processor(const JsonObject& json) {
  SERIN_TRY(const std::string type, json.text("type"));
  if (type == "ByteLevel") return std::optional<Template>();
  std::optional<Template> result;
  if (type == "Sequence") {
    SERIN_CHECK(json.only({"type", "processors"}));
    SERIN_TRY(const simdjson::dom::array list, json.array("processors"));
    size_t number = 0;
    for (const auto& element : list) {
      SERIN_TRY(const JsonObject one, JsonObject::of(element, fmt::format("{}[{}]", json.place("processors"), number++)));
      SERIN_TRY(auto part, read_processor(one));
      if (part && result) return one.unsupported("", "a second template in a sequence");
      if (part) result = std::move(part);
    }
    return result;
  }
  if (type == "TemplateProcessing") {
    SERIN_TRY(result, read_template(json));
  } else if (type == "BertProcessing") {
    SERIN_TRY(result, read_bert_template(json));
  } else if (type == "RobertaProcessing") {
    SERIN_TRY(result, read_roberta_template(json));
  } else {
    return json.unsupported("type", fmt::format("the post-processor '{}' is unknown", type));
  }
  return result;
}

}  // namespace

Result<Template> read_post_processor(const JsonObject& json) {
  SERIN_TRY(auto result, read_processor(json));
  return result ? std::move(*result) : Template();
}

}  // namespace serin::steps::text
