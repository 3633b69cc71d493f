// normalizer.h: rewrites a text before it is split: cleaning, lower case, Unicode forms, replacements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/steps/text/regex.h"
#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {

/// Immutable: any thread may ask.
class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;
  virtual ~Normalizer() = default;

  /// kTooLarge: a text of more than kMostNormalized bytes comes of it, or a regular expression takes too many steps.
  virtual Status apply(std::string& text) const = 0;
};

constexpr size_t kMostNormalized = size_t{256} << 20;

/// BERT's: drops control characters, makes all spaces plain, puts spaces around ideographs, drops accents (NFD, then without Mn), lower-cases.
struct BertCleaning {
  bool clean = true;
  bool ideographs = true;
  bool strip_accents = true;
  bool lower_case = true;
};
std::unique_ptr<Normalizer> make_bert_normalizer(const BertCleaning& rules);

std::unique_ptr<Normalizer> make_form(Form form);
std::unique_ptr<Normalizer> make_lower_case();
std::unique_ptr<Normalizer> make_strip_accents();  ///< drops all marks that stand alone
std::unique_ptr<Normalizer> make_strip(bool left, bool right);
std::unique_ptr<Normalizer> make_prepend(std::string prefix);  ///< to a text that is not empty
std::unique_ptr<Normalizer> make_replace(std::string what, std::string by);
std::unique_ptr<Normalizer> make_replace(Regex what, std::string by);
std::unique_ptr<Normalizer> make_nmt();            ///< SentencePiece's: drops control characters, makes spaces plain
std::unique_ptr<Normalizer> make_byte_spelling();  ///< GPT-2's spelling of bytes
std::unique_ptr<Normalizer> make_normalizers(std::vector<std::unique_ptr<Normalizer>> all);

/// SentencePiece's table of replacements ("precompiled_charsmap"), as it is in a file. kCorrupt: it refers to places outside of itself.
Result<std::unique_ptr<Normalizer>> make_charsmap(std::string_view table);

}  // namespace serin::steps::text
