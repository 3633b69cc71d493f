// scored_bpe.cc: SentencePiece's BPE. A heap holds the neighbours that could be merged, so a text of n characters takes n log n.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/steps/text/model.h"
#include "runtime/steps/text/trie.h"
#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

class ScoredBpe final : public Model {
 public:
  explicit ScoredBpe(ScoredBpeRules rules)
      : scores_(std::move(rules.scores)), unknown_(rules.unknown), byte_fallback_(rules.byte_fallback) {
    Trie::Keys whole;
    for (size_t id = 0; id < rules.tokens.size(); ++id) {
      const std::string& token = rules.tokens[id];
      vocabulary_.set(token, static_cast<int32_t>(id));
      if (!rules.hidden[id]) pieces_.set(token, static_cast<int32_t>(id));
      if (rules.whole[id]) whole.emplace_back(token, static_cast<int32_t>(id));
    }
    whole_ = Trie(std::move(whole));
    for (int byte = 0; byte < 256; ++byte) byte_ids_.push_back(vocabulary_.find(fmt::format("<0x{:02X}>", byte)));
  }

  bool tokenize(std::string_view word, std::vector<int32_t>& ids, Workspace& space) const override {
    auto& parts = space.parts;
    cut(word, parts);
    merge(word, parts, space.joins);
    bool after_unknown = false;
    for (int32_t at = parts.empty() ? -1 : 0; at >= 0; at = parts[static_cast<size_t>(at)].next) {
      const Workspace::Part& part = parts[static_cast<size_t>(at)];
      const std::string_view piece = word.substr(static_cast<size_t>(part.begin), static_cast<size_t>(part.size));
      const int32_t id = pieces_.find(piece);
      if (id >= 0)
        ids.push_back(id);
      else if (byte_fallback_)
        for (const char byte : piece) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
      else if (!after_unknown)
        ids.push_back(unknown_);
      after_unknown = id < 0;
    }
    return true;
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  void cut(std::string_view word, std::vector<Workspace::Part>& parts) const {
    parts.clear();
    for (size_t at = 0; at < word.size();) {
      const Trie::Match match = whole_.longest(word.substr(at));
      const size_t size = match.value >= 0 ? match.bytes : char_bytes(word[at]);
      const auto place = static_cast<int32_t>(parts.size());
      parts.push_back(
          {static_cast<int32_t>(at), static_cast<int32_t>(size), place - 1, at + size < word.size() ? place + 1 : -1, match.value >= 0});
      at += size;
    }
  }

  void merge(std::string_view word, std::vector<Workspace::Part>& parts, std::vector<Workspace::Join>& joins) const {
    const auto later = [](const Workspace::Join& a, const Workspace::Join& b) {
      return a.score != b.score ? a.score < b.score : a.left > b.left;
    };
    const auto part = [&parts](int32_t at) -> Workspace::Part& { return parts[static_cast<size_t>(at)]; };
    const auto push = [&](int32_t left, int32_t right) {
      if (left < 0 || right < 0 || part(left).whole || part(right).whole) return;
      const int32_t size = part(left).size + part(right).size;
      const int32_t id = pieces_.find(word.substr(static_cast<size_t>(part(left).begin), static_cast<size_t>(size)));
      if (id < 0) return;
      joins.push_back({scores_[static_cast<size_t>(id)], left, right, size});
      std::ranges::push_heap(joins, later);
    };
    joins.clear();
    for (int32_t at = 1; at < static_cast<int32_t>(parts.size()); ++at) push(at - 1, at);
    while (!joins.empty()) {
      std::ranges::pop_heap(joins, later);
      const Workspace::Join join = joins.back();
      joins.pop_back();
      auto& left = part(join.left);
      auto& right = part(join.right);
      if (left.size == 0 || right.size == 0 || left.size + right.size != join.size) continue;  // one of the two has been merged since
      left.size = join.size;
      left.next = right.next;
      if (right.next >= 0) part(right.next).previous = join.left;
      right.size = 0;
      push(left.previous, join.left);
      push(join.left, left.next);
    }
  }

  Vocabulary vocabulary_;
  Vocabulary pieces_;  // without the hidden ones
  Trie whole_;
  std::vector<float> scores_;
  int32_t unknown_;
  bool byte_fallback_;
  std::vector<int32_t> byte_ids_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_scored_bpe(ScoredBpeRules rules) {
  for (size_t id = 0; id < rules.scores.size(); ++id)
    if (!std::isfinite(rules.scores[id])) return Error{Code::kCorrupt, fmt::format("piece {} has no finite score", id)};
  return std::unique_ptr<Model>(std::make_unique<ScoredBpe>(std::move(rules)));
}

}  // namespace serin::steps::text
