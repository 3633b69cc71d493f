// added_tokens.h: tokens that are found in the text before it is split into words: [MASK], <|endoftext|> ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/steps/text/normalizer.h"
#include "runtime/steps/text/trie.h"
#include "runtime/steps/text/vocabulary.h"

namespace serin::steps::text {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  ///< only where no letter touches it
  bool strips_left = false;  ///< spaces in front belong to it
  bool strips_right = false;
  bool normalized = false;  ///< searched in the normalized text, as its normalized self
};

class AddedTokens {
 public:
  /// `normalizer` may be null.
  static Result<AddedTokens> make(std::vector<AddedToken> tokens, const Normalizer* normalizer);

  /// Calls take(text, id): the longest token at the leftmost place, then what follows. id -1: text between tokens, never empty.
  template <class F>
  Status split(std::string_view text, bool normalized, F&& take) const;

  bool any(bool normalized) const { return any_[normalized]; }
  int32_t find(std::string_view content) const { return ids_.find(content); }
  int64_t end_of_ids() const { return end_of_ids_; }

 private:
  struct Place {
    size_t begin, end;
  };
  /// Widens a place by the spaces that belong to it; false: not a single word.
  bool fits(std::string_view text, const AddedToken& token, size_t from, Place& place) const;

  std::vector<AddedToken> tokens_;
  Vocabulary ids_;
  Trie tries_[2];  // of normalized ones: 1
  bool any_[2] = {};
  int64_t end_of_ids_ = 0;
};

template <class F>
Status AddedTokens::split(std::string_view text, bool normalized, F&& take) const {
  const Trie& trie = tries_[normalized];
  size_t from = 0;
  for (size_t at = 0; any_[normalized] && at < text.size();) {
    if (!trie.starts_with(text[at])) {
      ++at;
      continue;
    }
    const Trie::Match match = trie.longest(text.substr(at));
    if (match.value < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    Place place{at, at + match.bytes};
    at = place.end;
    if (!fits(text, token, from, place)) continue;
    if (from < place.begin) SERIN_CHECK(take(text.substr(from, place.begin - from), -1));
    SERIN_CHECK(take(text.substr(place.begin, place.end - place.begin), token.id));
    from = place.end;
    at = std::max(at, from);
  }
  if (from < text.size()) SERIN_CHECK(take(text.substr(from), -1));
  return {};
}

}  // namespace serin::steps::text
