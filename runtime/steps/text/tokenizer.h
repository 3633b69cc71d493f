// tokenizer.h: turns text into the ids that a language model was trained with, by the file that came with the model.
//
//   SERIN_TRY(const std::shared_ptr<const Tokenizer> tokenizer, Tokenizer::load("bert/tokenizer.json"));
//   SERIN_TRY(Encoding encoding, tokenizer->encode("Hello, world", std::nullopt, {.max_length = 128}));
//   tokenizer->pad(encoding, 128);        // now ids, types and mask have 128 elements each
//
// Files, told apart by their contents:
//   tokenizer.json     of Hugging Face: WordPiece, BPE, Unigram, with their normalizers, pre-tokenizers and templates
//   vocab.txt          of BERT and ERNIE: one token a line
//   *.model            of SentencePiece: Unigram and BPE
//
// The ids are those of the Python packages tokenizers, transformers and sentencepiece. README.md lists the exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/steps/text/options.h"

namespace serin::steps::text {

struct TokenizerParts;

/// Three lists of one length, for inputs that are usually called input_ids, token_type_ids and attention_mask.
struct Encoding {
  std::vector<int64_t> ids;
  std::vector<int64_t> types;  ///< 0 in the first text, 1 in the second, unless the file says something else
  std::vector<int64_t> mask;   ///< 1; 0 where pad() has added a token
};

struct EncodeOptions {
  /// Tokens at most, those of the template included. Nothing: what the file says; if it says nothing, there is no limit.
  std::optional<int64_t> max_length;
  /// Cut longer texts, of a pair the longer text first unless the file says something else. False: they are an error.
  bool truncate = true;
  /// Add [CLS], [SEP] and the like, as the file's template says.
  bool special_tokens = true;
};

/// Immutable: any thread may encode.
class Tokenizer {
 public:
  /// Errors name the file and the place in it. kNotFound and the other codes of read_file(); kCorrupt: damaged, or it contradicts itself;
  /// kUnsupported: it is valid and asks for something that is missing here, which is named.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::string& path, const LoadOptions& options = {});

  /// The same from memory; `config` is the tokenizer_config.json, or empty.
  static Result<std::shared_ptr<const Tokenizer>> read(std::string_view contents, const std::string& config,
                                                       const LoadOptions& options = {});

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// kInvalidArgument: text that is not UTF-8 (Python's strings cannot hold any other), or no room for the template in max_length.
  /// kTooLarge: a text over max_text_bytes, or one over max_length without `truncate`. kUnsupported: a character without a token.
  Result<Encoding> encode(std::string_view text, std::optional<std::string_view> pair = std::nullopt,
                          const EncodeOptions& options = {}) const;

  /// Adds padding up to `length` tokens. A longer encoding stays as it is.
  void pad(Encoding& encoding, size_t length) const;

  const Padding& padding() const;
  int64_t pad_id() const { return padding().id; }
  /// The id of a token, special ones included.
  std::optional<int64_t> find(std::string_view token) const;
  /// One more than the largest id: the rows that the embedding of a model has at least.
  int64_t vocabulary_size() const;

 private:
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);

  std::unique_ptr<const TokenizerParts> parts_;
};

}  // namespace serin::steps::text
