// wordpiece.cc: most words are tokens, so the whole word is looked up first. Otherwise a trie gives the longest piece in one walk.

#include <fmt/format.h>

#include "runtime/steps/text/model.h"
#include "runtime/steps/text/trie.h"
#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

class WordPiece final : public Model {
 public:
  WordPiece(Vocabulary vocabulary, const WordPieceRules& rules, int32_t unknown)
      : vocabulary_(std::move(vocabulary)), most_chars_(static_cast<size_t>(rules.most_chars)), unknown_(unknown) {
    Trie::Keys first, others;
    for (const auto& token : vocabulary_.tokens()) {
      const std::string_view name = vocabulary_.text(token);
      first.emplace_back(name, token.id);
      if (name.starts_with(rules.continuing)) others.emplace_back(name.substr(rules.continuing.size()), token.id);
    }
    first_ = Trie(std::move(first));
    others_ = Trie(std::move(others));
  }

  bool tokenize(std::string_view word, std::vector<int32_t>& ids, Workspace& /*space*/) const override {
    if (word.size() > most_chars_ && count_chars(word) > most_chars_) {
      ids.push_back(unknown_);
      return true;
    }
    if (const int32_t whole = vocabulary_.find(word); whole >= 0) {
      ids.push_back(whole);
      return true;
    }
    const size_t before = ids.size();
    const Trie* trie = &first_;
    for (size_t at = 0; at < word.size(); trie = &others_) {
      const Trie::Match piece = trie->longest(word.substr(at));
      if (piece.value < 0) {
        ids.resize(before);
        ids.push_back(unknown_);
        return true;
      }
      ids.push_back(piece.value);
      at += piece.bytes;
    }
    return true;
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
  size_t most_chars_;
  int32_t unknown_;
  Trie first_, others_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_word_piece(Vocabulary vocabulary, const WordPieceRules& rules) {
  const int32_t unknown = vocabulary.find(rules.unknown);
  if (unknown < 0)
    return Error{Code::kCorrupt, fmt::format("the vocabulary has no token '{}', which stands for unknown words", rules.unknown)};
  if (rules.most_chars < 1 || rules.most_chars > 100'000) {
    return Error{Code::kCorrupt, fmt::format("max_input_chars_per_word is {}; it must be between 1 and 100000", rules.most_chars)};
  }
  return std::unique_ptr<Model>(std::make_unique<WordPiece>(std::move(vocabulary), rules, unknown));
}

}  // namespace serin::steps::text
