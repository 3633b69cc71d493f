// added_tokens.cc: the tries of added tokens, and the characters around a place in a text.

#include "runtime/steps/text/added_tokens.h"

#include <algorithm>

#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

/// The beginning of the character before `at`.
size_t previous_char(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

uint16_t classes_at(std::string_view text, size_t at) {
  const char* place = text.data() + at;
  return CharTable::get().of(next_char(place));
}

}  // namespace

Result<AddedTokens> AddedTokens::make(std::vector<AddedToken> tokens, const Normalizer* normalizer) {
  AddedTokens added;
  added.tokens_ = std::move(tokens);
  std::vector<std::string> contents;  // the keys, while the tries are built
  for (const AddedToken& token : added.tokens_) {
    contents.push_back(token.content);
    if (token.normalized && normalizer) SERIN_CHECK(normalizer->apply(contents.back()));
  }
  Trie::Keys keys[2];
  for (size_t i = 0; i < contents.size(); ++i) {
    const AddedToken& token = added.tokens_[i];
    keys[token.normalized].emplace_back(contents[i], static_cast<int32_t>(i));
    added.any_[token.normalized] |= !contents[i].empty();
    added.ids_.set(token.content, token.id);
    added.end_of_ids_ = std::max(added.end_of_ids_, int64_t{token.id} + 1);
  }
  for (int i = 0; i < 2; ++i) added.tries_[i] = Trie(std::move(keys[i]));
  return added;
}

bool AddedTokens::fits(std::string_view text, const AddedToken& token, size_t from, Place& place) const {
  if (token.single_word) {
    if (place.begin > 0 && classes_at(text, previous_char(text, place.begin)) & kWord) return false;
    if (place.end < text.size() && classes_at(text, place.end) & kWord) return false;
  }
  if (token.strips_left)
    while (place.begin > from && classes_at(text, previous_char(text, place.begin)) & kSpace)
      place.begin = previous_char(text, place.begin);
  if (token.strips_right)
    while (place.end < text.size() && classes_at(text, place.end) & kSpace) place.end += char_bytes(text[place.end]);
  return true;
}

}  // namespace serin::steps::text
