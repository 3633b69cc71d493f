// model.h: turns words into ids. One implementation a file: WordPiece, BPE, Unigram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/steps/text/vocabulary.h"

namespace serin::steps::text {

/// Memory of one call, which its words use in turn.
struct Workspace {
  struct Symbol {
    int32_t id, previous, next;
  };
  struct Merge {
    uint64_t rule;
    uint32_t at;
  };
  struct Arrival {
    double score;
    int32_t begin, id;
  };
  struct Span {
    int32_t begin, end, id;
  };
  struct Part {
    int32_t begin, size, previous, next;  ///< size 0: merged into the one before
    bool whole;
  };
  struct Join {
    float score;
    int32_t left, right, size;
  };
  std::vector<int32_t> ids;
  std::vector<uint64_t> rules;
  std::vector<Symbol> symbols;
  std::vector<Merge> queue;
  std::vector<Arrival> arrivals;
  std::vector<Span> spans;
  std::vector<Part> parts;
  std::vector<Join> joins;
};

/// Immutable: any thread may ask.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  /// Appends the ids of one word. False: the word needs an unknown token, and the file names none.
  virtual bool tokenize(std::string_view word, std::vector<int32_t>& ids, Workspace& space) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
};

/// WordPiece: the longest piece that begins the word, then the longest that continues it (Schuster and Nakajima, 2012; Devlin et al., 2018).
/// A word that has no such pieces, or more characters than `most_chars`, is unknown.
struct WordPieceRules {
  std::string unknown = "[UNK]";
  std::string continuing = "##";
  int64_t most_chars = 100;
};
Result<std::unique_ptr<Model>> make_word_piece(Vocabulary vocabulary, const WordPieceRules& rules);

/// Byte pair encoding (Sennrich et al., 2016): the pair of the best rank is merged first, of equal ones the leftmost.
struct BpeRules {
  std::vector<std::pair<std::string, std::string>> merges;  ///< by rank
  std::string unknown;                                      ///< empty: none, unknown characters are left out
  std::string continuing;                                   ///< in front of a symbol that does not begin a word
  std::string ending;                                       ///< behind the last symbol of a word
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  ///< a word that is a token is this token, whatever the merges
  bool raw_bytes = false;      ///< the text comes as bytes, while the file spells them in GPT-2's alphabet
};
Result<std::unique_ptr<Model>> make_bpe(Vocabulary vocabulary, BpeRules rules);

/// Unigram (Kudo, 2018): the pieces with the largest sum of scores. An unknown character has the lowest score minus 10.
struct UnigramRules {
  std::vector<std::string> tokens;  ///< by id
  std::vector<double> scores;       ///< by id
  std::vector<bool> hidden;         ///< by id: never found in a text; empty: all are found
  int32_t unknown = -1;
  bool byte_fallback = false;
  bool like_sentencepiece =
      false;  ///< sums in single precision, and unknown neighbours together are never a token; the Rust library differs
};
Result<std::unique_ptr<Model>> make_unigram(UnigramRules rules);

/// SentencePiece's BPE: neighbours whose joint text is a piece are merged, the highest score first, of equal ones the leftmost.
struct ScoredBpeRules {
  std::vector<std::string> tokens;  ///< by id
  std::vector<float> scores;        ///< by id
  std::vector<bool> hidden;         ///< by id: never found in a text
  std::vector<bool> whole;          ///< by id: found first, and never merged
  int32_t unknown = -1;
  bool byte_fallback = false;
};
Result<std::unique_ptr<Model>> make_scored_bpe(ScoredBpeRules rules);

}  // namespace serin::steps::text
