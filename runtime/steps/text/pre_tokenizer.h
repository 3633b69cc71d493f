// pre_tokenizer.h: cuts a text into words, which a model then turns into ids one by one.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/steps/text/regex.h"

namespace serin::steps::text {

struct Piece {
  std::string_view text;
  bool first = false;  ///< it begins the text of the client
};

/// The pieces of one text. Views are of that text, or of `made`, which keeps what a step has written anew.
struct Pieces {
  std::vector<Piece> now;
  std::vector<Piece> next;  ///< for a step to write into
  std::deque<std::string> made;
};

/// Immutable: any thread may ask.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  /// Replaces pieces.now by shorter ones, none of them empty. kTooLarge: a regular expression takes too many steps.
  virtual Status split(Pieces& pieces) const = 0;
};

/// The fate of matches, which separate words.
enum class Behavior : uint8_t { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

enum class Prepend : uint8_t { kAlways, kFirst, kNever };

struct ByteLevelRules {
  bool add_prefix_space = true;
  bool use_regex = true;
  bool spell = false;  ///< write bytes as GPT-2 does; not for a model of raw bytes (BpeRules::raw_bytes)
};

std::unique_ptr<PreTokenizer> make_bert_splitter();  ///< at spaces, and each punctuation mark alone
std::unique_ptr<PreTokenizer> make_byte_level(const ByteLevelRules& rules);
std::unique_ptr<PreTokenizer> make_whitespace();        ///< words and runs of other characters, without spaces
std::unique_ptr<PreTokenizer> make_whitespace_split();  ///< at spaces only
std::unique_ptr<PreTokenizer> make_punctuation(Behavior behavior);
std::unique_ptr<PreTokenizer> make_digits(bool each_alone);
std::unique_ptr<PreTokenizer> make_metaspace(std::string mark, Prepend prepend, bool split);
std::unique_ptr<PreTokenizer> make_split(Regex pattern, Behavior behavior, bool invert);
std::unique_ptr<PreTokenizer> make_split(std::string separator, Behavior behavior, bool invert);
std::unique_ptr<PreTokenizer> make_pre_tokenizers(std::vector<std::unique_ptr<PreTokenizer>> all);

/// GPT-2's words ('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+), without a regular expression.
void split_like_gpt2(const Piece& piece, std::vector<Piece>& words);

}  // namespace serin::steps::text
