// unigram.cc: Viterbi over the text: for each place the best sum of scores that arrives there. Pieces come from a trie, so the time is the length
// of the text times that of the longest token.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/steps/text/model.h"
#include "runtime/steps/text/trie.h"
#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

constexpr double kUnknownPenalty = 10;

class Unigram final : public Model {
 public:
  explicit Unigram(UnigramRules rules)
      : scores_(std::move(rules.scores)),
        unknown_(rules.unknown),
        byte_fallback_(rules.byte_fallback),
        like_sentencepiece_(rules.like_sentencepiece) {
    Trie::Keys keys;
    vocabulary_.reserve(rules.tokens.size(), 0);
    double lowest = std::numeric_limits<double>::max();
    for (size_t id = 0; id < rules.tokens.size(); ++id) {
      vocabulary_.set(rules.tokens[id], static_cast<int32_t>(id));
      if (!rules.hidden.empty() && rules.hidden[id]) continue;
      keys.emplace_back(rules.tokens[id], static_cast<int32_t>(id));
      lowest = std::min(lowest, scores_[id]);
    }
    trie_ = Trie(std::move(keys));
    unknown_score_ = rounded(lowest - kUnknownPenalty);
    for (int byte = 0; byte < 256; ++byte) byte_ids_.push_back(vocabulary_.find(fmt::format("<0x{:02X}>", byte)));
  }

  bool tokenize(std::string_view word, std::vector<int32_t>& ids, Workspace& space) const override {
    if (!find_best(word, space.arrivals)) return false;
    auto& spans = space.spans;  // from the last to the first; unknown neighbours are one span
    spans.clear();
    for (auto end = static_cast<int32_t>(word.size()); end > 0;) {
      const auto& arrival = space.arrivals[static_cast<size_t>(end)];
      if (!spans.empty() && arrival.id == unknown_ && spans.back().id == unknown_)
        spans.back().begin = arrival.begin;
      else
        spans.push_back({arrival.begin, end, arrival.id});
      end = arrival.begin;
    }
    for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
      if (span->id == unknown_)
        append_unknown(word.substr(static_cast<size_t>(span->begin), static_cast<size_t>(span->end - span->begin)), ids);
      else
        ids.push_back(span->id);
    }
    return true;
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  bool find_best(std::string_view word, std::vector<Workspace::Arrival>& arrivals) const {
    arrivals.assign(word.size() + 1, {0, -1, 0});
    for (size_t at = 0; at < word.size();) {
      const double here = arrivals[at].score;
      const size_t one = char_bytes(word[at]);
      bool single = false;
      const auto arrive = [&](size_t bytes, double score, int32_t id) {
        Workspace::Arrival& there = arrivals[at + bytes];
        const double sum = rounded(here + score);
        if (there.begin < 0 || sum > there.score) there = {sum, static_cast<int32_t>(at), id};
      };
      trie_.each_prefix(word.substr(at), [&](size_t bytes, int32_t id) {
        arrive(bytes, scores_[static_cast<size_t>(id)], id);
        single |= bytes == one;
      });
      if (!single) {
        if (unknown_ < 0) return false;
        arrive(one, unknown_score_, unknown_);
      }
      at += one;
    }
    return true;
  }

  void append_unknown(std::string_view piece, std::vector<int32_t>& ids) const {
    if (const int32_t id = like_sentencepiece_ ? -1 : vocabulary_.find(piece); id >= 0) return ids.push_back(id);
    const auto id_of_byte = [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
    if (!byte_fallback_ || !std::ranges::all_of(piece, [&](char byte) { return id_of_byte(byte) >= 0; })) return ids.push_back(unknown_);
    for (const char byte : piece) ids.push_back(id_of_byte(byte));
  }

  double rounded(double score) const { return like_sentencepiece_ ? static_cast<double>(static_cast<float>(score)) : score; }

  Vocabulary vocabulary_;
  Trie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  int32_t unknown_;
  bool byte_fallback_;
  bool like_sentencepiece_;
  std::vector<int32_t> byte_ids_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_unigram(UnigramRules rules) {
  if (rules.tokens.empty()) return Error{Code::kCorrupt, "the vocabulary is empty"};
  if (rules.unknown >= static_cast<int32_t>(rules.tokens.size())) {
    return Error{Code::kCorrupt, fmt::format("unk_id is {}, but there are {} tokens", rules.unknown, rules.tokens.size())};
  }
  for (size_t id = 0; id < rules.scores.size(); ++id)
    if (!std::isfinite(rules.scores[id])) return Error{Code::kCorrupt, fmt::format("token {} has no finite score", id)};
  return std::unique_ptr<Model>(std::make_unique<Unigram>(std::move(rules)));
}

}  // namespace serin::steps::text
