// json_readers.h: the parts of a tokenizer.json, one reader each. They refuse what they do not know, with its name and its place.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/steps/text/json_object.h"
#include "runtime/steps/text/parts.h"

namespace serin::steps::text {

Result<std::unique_ptr<Normalizer>> read_normalizer(const JsonObject& json);

struct PreTokenizing {
  std::unique_ptr<PreTokenizer> steps;
  bool raw_bytes = false;  ///< ByteLevel comes last and leaves the spelling of bytes to the model
};
/// `model_takes_bytes`: the model is BPE, which can read the bytes themselves.
Result<PreTokenizing> read_pre_tokenizer(const JsonObject& json, bool model_takes_bytes);

Result<std::unique_ptr<Model>> read_model(const JsonObject& json, bool raw_bytes);
/// By "type"; old files have none, and then by the keys.
Result<std::string> model_type(const JsonObject& json);

Result<Template> read_post_processor(const JsonObject& json);
Result<std::vector<AddedToken>> read_added_tokens(const JsonObject& root, const Vocabulary& vocabulary);

/// "pattern": {"String": ...} or {"Regex": ...}
struct Pattern {
  std::string text;
  bool is_regex = false;
};
Result<Pattern> read_pattern(const JsonObject& json);

/// Adds the place to an error.
template <class T>
Result<T> at_place(Result<T> result, const std::string& place) {
  if (!result) return result.error().in(place);
  return result;
}

}  // namespace serin::steps::text
