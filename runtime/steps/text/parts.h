// parts.h: what a tokenizer is made of. Each reader of a file fills these; tokenizer.cc runs them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/steps/text/added_tokens.h"
#include "runtime/steps/text/model.h"
#include "runtime/steps/text/normalizer.h"
#include "runtime/steps/text/options.h"
#include "runtime/steps/text/pre_tokenizer.h"

namespace serin::steps::text {

/// One step of a template: a text, or tokens of its own.
struct TemplateStep {
  enum class Kind : uint8_t { kFirst, kSecond, kSpecial };
  Kind kind = Kind::kFirst;
  int64_t type = 0;
  std::vector<int32_t> ids;  ///< of kSpecial
};

/// Where texts and special tokens stand. Without special tokens the texts stay, with their types.
struct Template {
  std::vector<TemplateStep> single = {{TemplateStep::Kind::kFirst, 0, {}}};
  std::vector<TemplateStep> pair = {{TemplateStep::Kind::kFirst, 0, {}}, {TemplateStep::Kind::kSecond, 1, {}}};
};

struct Truncation {
  enum class Strategy : uint8_t { kLongestFirst, kOnlyFirst, kOnlySecond };
  std::optional<int64_t> max_length;
  Strategy strategy = Strategy::kLongestFirst;
  bool left = false;  ///< what is cut stands at the beginning
};

struct TokenizerParts {
  std::unique_ptr<Normalizer> normalizer;       ///< may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  ///< may be null: the text is one word
  std::unique_ptr<Model> model;
  AddedTokens added;
  Template around;
  Truncation truncation;
  Padding padding;
  size_t max_text_bytes = 0;
};

// The readers of the three kinds of files; `config` is the text of the tokenizer_config.json, or empty.
using LoadedParts = Result<std::unique_ptr<TokenizerParts>>;
LoadedParts load_tokenizer_json(std::string_view contents);
LoadedParts load_vocab_txt(std::string_view contents, const std::string& config, const LoadOptions& options);
LoadedParts load_sentencepiece(std::string_view contents, const std::string& config, const LoadOptions& options);

}  // namespace serin::steps::text
