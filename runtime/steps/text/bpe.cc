// bpe.cc: byte pair encoding. Three ways to the ids of a word, by what is cheapest:
//
//   known     words that the merges turn into a single token, found when the file is read: one search of a table
//   short     the pairs of the word in an array; the best one is searched each time
//   long      a heap of pairs, so that a text without spaces takes n log n
//
// With ByteLevel the file spells bytes as printable characters. Its tokens are translated to bytes once, and the text stays as it is.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "runtime/steps/text/byte_alphabet.h"
#include "runtime/steps/text/model.h"
#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

constexpr uint64_t kNoRule = UINT64_MAX;
constexpr size_t kShort = 64;

/// (left, right) > rank and merged id. A rule is rank * 2^32 + id, so that the smallest rule is the best one.
class MergeTable {
 public:
  explicit MergeTable(size_t merges)
      : slots_(std::bit_ceil(std::max<size_t>(16, merges * 2))), shift_(64 - std::countr_zero(slots_.size())) {}

  void set(int32_t left, int32_t right, uint64_t rule) {
    const uint64_t wanted = key(left, right);
    size_t at = start(wanted);
    while (slots_[at].rule != kNoRule && slots_[at].key != wanted) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {wanted, rule};
  }

  uint64_t find(int32_t left, int32_t right) const {
    const uint64_t wanted = key(left, right);
    for (size_t at = start(wanted);; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].key == wanted || slots_[at].rule == kNoRule) return slots_[at].rule;
  }

 private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    uint64_t rule = kNoRule;
  };
  static uint64_t key(int32_t left, int32_t right) { return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right); }
  size_t start(uint64_t key) const { return static_cast<size_t>((key ^ key >> 29) * 0x9E3779B97F4A7C15 >> shift_); }

  std::vector<Slot> slots_;
  int shift_;
};

class Bpe final : public Model {
 public:
  static Result<std::unique_ptr<Model>> make(Vocabulary vocabulary, BpeRules rules) {
    auto model = std::make_unique<Bpe>(std::move(vocabulary), std::move(rules));
    SERIN_CHECK(model->read_merges());
    model->find_known_words();
    return std::unique_ptr<Model>(std::move(model));
  }

  Bpe(Vocabulary vocabulary, BpeRules rules) : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)), merges_(rules_.merges.size()) {
    unknown_ = rules_.unknown.empty() ? -1 : vocabulary_.find(rules_.unknown);
    std::string bytes;
    for (const auto& token : vocabulary_.tokens()) {
      const std::string_view name = vocabulary_.text(token);
      if (!rules_.raw_bytes)
        pieces_.set(name, token.id);
      else if (read_bytes(name, bytes))
        pieces_.set(bytes, token.id);
    }
    for (size_t byte = 0; byte < 256; ++byte) {
      const std::string symbol(1, static_cast<char>(byte));
      fallback_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
      for (size_t place = 0; place < 4; ++place) bytes_[place][byte] = pieces_.find(spell(symbol, (place & 1) != 0, (place & 2) != 0));
    }
  }

  bool tokenize(std::string_view word, std::vector<int32_t>& ids, Workspace& space) const override {
    if (const int32_t known = words_.find(word); known >= 0) {
      ids.push_back(known);
      return true;
    }
    merge_word(word, space);
    ids.insert(ids.end(), space.ids.begin(), space.ids.end());
    return true;
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  std::string spell(std::string_view symbol, bool first, bool last) const {
    return fmt::format("{}{}{}", first ? "" : rules_.continuing, symbol, last ? rules_.ending : "");
  }

  Status read_merges() {
    if (!rules_.unknown.empty() && unknown_ < 0)
      return Error{Code::kCorrupt, fmt::format("the vocabulary has no token '{}' (unk_token)", rules_.unknown)};
    for (size_t rank = 0; rank < rules_.merges.size(); ++rank) {
      const auto& [left, right] = rules_.merges[rank];
      const auto problem = [&](std::string_view what) { return Error{Code::kCorrupt, fmt::format("merges[{}]: {}", rank, what)}; };
      if (!right.starts_with(rules_.continuing)) return problem(fmt::format("'{}' does not begin with '{}'", right, rules_.continuing));
      std::array<int32_t, 3> ids{};
      const std::array<std::string, 3> names = {left, right, left + right.substr(rules_.continuing.size())};
      for (size_t i = 0; i < 3; ++i) {
        ids[i] = vocabulary_.find(names[i]);
        if (ids[i] < 0) return problem(fmt::format("the vocabulary has no token '{}'", names[i]));
      }
      merges_.set(ids[0], ids[1], uint64_t{rank} << 32 | static_cast<uint32_t>(ids[2]));
    }
    rules_.merges = {};
    return {};
  }

  /// The words that are one token in the end. With ignore_merges all tokens are.
  void find_known_words() {
    Workspace space;
    words_.reserve(pieces_.size(), 0);
    for (const auto& token : pieces_.tokens()) {
      std::string_view word = pieces_.text(token);
      if (word.empty()) continue;
      if (rules_.ignore_merges) {
        words_.set(word, token.id);
        continue;
      }
      for (int i = 0; i < 2 && !word.empty(); ++i) {
        merge_word(word, space);
        if (space.ids.size() == 1) words_.set(word, space.ids[0]);
        if (rules_.ending.empty() || !word.ends_with(rules_.ending)) break;
        word.remove_suffix(rules_.ending.size());
      }
    }
  }

  void merge_word(std::string_view word, Workspace& space) const {
    space.ids.clear();
    if (rules_.raw_bytes)
      read_raw_bytes(word, space.ids);
    else
      read_chars(word, space.ids);
    if (space.ids.size() > kShort)
      merge_long(space);
    else
      merge_short(space);
  }

  void read_raw_bytes(std::string_view word, std::vector<int32_t>& ids) const {
    for (size_t i = 0; i < word.size(); ++i) {
      const size_t place = (i == 0 ? 1 : 0) | (i + 1 == word.size() ? 2 : 0);
      const int32_t id = bytes_[place][static_cast<unsigned char>(word[i])];
      if (id >= 0)
        ids.push_back(id);
      else if (unknown_ >= 0 && !(rules_.fuse_unknown && !ids.empty() && ids.back() == unknown_))
        ids.push_back(unknown_);
    }
  }

  /// Unknown characters wait until the next known one, behind the bytes of others: so does the peer.
  void read_chars(std::string_view word, std::vector<int32_t>& ids) const {
    bool waiting = false;
    for (size_t at = 0; at < word.size();) {
      const size_t size = char_bytes(word[at]);
      const std::string_view symbol = word.substr(at, size);
      const bool first = at == 0, last = at + size == word.size();
      at += size;
      const int32_t id = id_of(symbol, first, last);
      if (id >= 0) {
        if (waiting) ids.push_back(unknown_);
        waiting = false;
        ids.push_back(id);
        continue;
      }
      if (rules_.byte_fallback &&
          fall_back(rules_.continuing.empty() && rules_.ending.empty() ? std::string(symbol) : spell(symbol, first, last), ids))
        continue;
      if (unknown_ < 0) continue;
      if (waiting && !rules_.fuse_unknown) ids.push_back(unknown_);
      waiting = true;
    }
    if (waiting) ids.push_back(unknown_);
  }

  int32_t id_of(std::string_view symbol, bool first, bool last) const {
    if (symbol.size() == 1) return bytes_[(first ? 1 : 0) | (last ? 2 : 0)][static_cast<unsigned char>(symbol[0])];
    if ((first || rules_.continuing.empty()) && (!last || rules_.ending.empty())) return pieces_.find(symbol);
    return pieces_.find(spell(symbol, first, last));
  }

  bool fall_back(std::string_view symbol, std::vector<int32_t>& ids) const {
    const auto id_of_byte = [this](char byte) { return fallback_[static_cast<unsigned char>(byte)]; };
    if (!std::ranges::all_of(symbol, [&](char byte) { return id_of_byte(byte) >= 0; })) return false;
    for (const char byte : symbol) ids.push_back(id_of_byte(byte));
    return true;
  }

  void merge_short(Workspace& space) const {
    auto& ids = space.ids;
    auto& rules = space.rules;  // rules[i]: of ids[i] and ids[i + 1]
    size_t pairs = ids.empty() ? 0 : ids.size() - 1;
    rules.resize(pairs);
    for (size_t i = 0; i < pairs; ++i) rules[i] = merges_.find(ids[i], ids[i + 1]);
    while (pairs > 0) {
      size_t best = 0;
      for (size_t i = 1; i < pairs; ++i)
        if (rules[i] < rules[best]) best = i;
      if (rules[best] == kNoRule) break;
      ids[best] = static_cast<int32_t>(rules[best]);
      std::copy(ids.begin() + static_cast<ptrdiff_t>(best) + 2, ids.begin() + static_cast<ptrdiff_t>(pairs) + 1,
                ids.begin() + static_cast<ptrdiff_t>(best) + 1);
      std::copy(rules.begin() + static_cast<ptrdiff_t>(best) + 1, rules.begin() + static_cast<ptrdiff_t>(pairs),
                rules.begin() + static_cast<ptrdiff_t>(best));
      --pairs;
      if (best > 0) rules[best - 1] = merges_.find(ids[best - 1], ids[best]);
      if (best < pairs) rules[best] = merges_.find(ids[best], ids[best + 1]);
    }
    ids.resize(ids.empty() ? 0 : pairs + 1);
  }

  void merge_long(Workspace& space) const {
    auto& symbols = space.symbols;
    auto& queue = space.queue;
    const auto later = [](const Workspace::Merge& a, const Workspace::Merge& b) {
      return a.rule != b.rule ? a.rule > b.rule : a.at > b.at;
    };
    const auto count = static_cast<int32_t>(space.ids.size());
    symbols.clear();
    queue.clear();
    for (int32_t i = 0; i < count; ++i) symbols.push_back({space.ids[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
    const auto symbol = [&symbols](int32_t at) -> Workspace::Symbol& { return symbols[static_cast<size_t>(at)]; };
    const auto rule_at = [&](int32_t at) {
      const auto& left = symbol(at);
      return left.id < 0 || left.next < 0 ? kNoRule : merges_.find(left.id, symbol(left.next).id);
    };
    const auto push = [&](int32_t at) {
      if (at < 0) return;
      const uint64_t rule = rule_at(at);
      if (rule == kNoRule) return;
      queue.push_back({rule, static_cast<uint32_t>(at)});
      std::ranges::push_heap(queue, later);
    };
    for (int32_t i = 0; i < count; ++i)
      if (const uint64_t rule = rule_at(i); rule != kNoRule) queue.push_back({rule, static_cast<uint32_t>(i)});
    std::ranges::make_heap(queue, later);
    while (!queue.empty()) {
      std::ranges::pop_heap(queue, later);
      const auto [rule, place] = queue.back();
      queue.pop_back();
      const auto at = static_cast<int32_t>(place);
      if (rule_at(at) != rule) continue;  // one of the two has been merged since
      auto& left = symbol(at);
      auto& right = symbol(left.next);
      left.id = static_cast<int32_t>(rule);
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0) symbol(left.next).previous = at;
      push(left.previous);
      push(at);
    }
    space.ids.clear();
    for (int32_t at = 0; at >= 0; at = symbol(at).next) space.ids.push_back(symbol(at).id);
  }

  Vocabulary vocabulary_;
  Vocabulary pieces_;  // what symbols are searched in: the vocabulary, translated to bytes with raw_bytes
  Vocabulary words_;
  BpeRules rules_;
  MergeTable merges_;
  int32_t unknown_ = -1;
  std::array<std::array<int32_t, 256>, 4> bytes_{};  // of one byte: [first + 2 * last]
  std::array<int32_t, 256> fallback_{};
};

}  // namespace

Result<std::unique_ptr<Model>> make_bpe(Vocabulary vocabulary, BpeRules rules) {
  if (vocabulary.size() == 0) return Error{Code::kCorrupt, "the vocabulary is empty"};
  return Bpe::make(std::move(vocabulary), std::move(rules));
}

}  // namespace serin::steps::text
