// pre_tokenizers.cc: one class for each way to cut. All tell a Cutter which parts match; it does what the behaviour says about matches.

#include <algorithm>
#include <utility>

#include "runtime/steps/text/byte_alphabet.h"
#include "runtime/steps/text/pre_tokenizer.h"
#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

/// Takes the parts of a piece from left to right and writes words.
class Cutter {
 public:
  Cutter(const Piece& piece, Behavior behavior, std::vector<Piece>& out) : piece_(piece), behavior_(behavior), out_(out) {}

  void part(size_t begin, size_t end, bool match) {
    if (begin == end) return;
    switch (behavior_) {
      case Behavior::kRemoved:
        if (!match) put(begin, end);
        break;
      case Behavior::kIsolated: put(begin, end); break;
      case Behavior::kContiguous:
        if (any_ && match == last_match_)
          extend(end);
        else
          put(begin, end);
        break;
      case Behavior::kMergedWithPrevious:
        if (any_ && match && !last_match_)
          extend(end);
        else
          put(begin, end);
        break;
      case Behavior::kMergedWithNext:
        if (any_ && !match && last_match_)
          extend(end);
        else
          put(begin, end);
        break;
    }
    any_ = true;
    last_match_ = match;
  }

 private:
  void put(size_t begin, size_t end) {
    begin_ = begin;
    out_.push_back({piece_.text.substr(begin, end - begin), piece_.first && begin == 0});
  }
  void extend(size_t end) { out_.back().text = piece_.text.substr(begin_, end - begin_); }

  const Piece piece_;
  Behavior behavior_;
  std::vector<Piece>& out_;
  size_t begin_ = 0;
  bool any_ = false;
  bool last_match_ = false;
};

/// Cuts each piece by a function: cut(piece, out, pieces) returns a Status.
template <class F>
Status each_piece(Pieces& pieces, F&& cut) {
  pieces.next.clear();
  for (const Piece& piece : pieces.now) SERIN_CHECK(cut(piece, pieces.next));
  std::swap(pieces.now, pieces.next);
  return {};
}

/// Each character that has one of the classes is a match.
class ByClass final : public PreTokenizer {
 public:
  ByClass(uint16_t classes, Behavior behavior) : classes_(classes), behavior_(behavior) {}

  Status split(Pieces& pieces) const override {
    return each_piece(pieces, [this](const Piece& piece, std::vector<Piece>& out) -> Status {
      Cutter cutter(piece, behavior_, out);
      const char* const begin = piece.text.data();
      const char* const end = begin + piece.text.size();
      const char* plain = begin;
      for (const char* at = begin; at != end;) {
        const char* const here = at;
        if (!(table_.of(next_char(at)) & classes_)) continue;
        cutter.part(static_cast<size_t>(plain - begin), static_cast<size_t>(here - begin), false);
        cutter.part(static_cast<size_t>(here - begin), static_cast<size_t>(at - begin), true);
        plain = at;
      }
      cutter.part(static_cast<size_t>(plain - begin), piece.text.size(), false);
      return {};
    });
  }

 private:
  const CharTable& table_ = CharTable::get();
  uint16_t classes_;
  Behavior behavior_;
};

class BertSplitter final : public PreTokenizer {
 public:
  BertSplitter() {
    for (int byte = 0; byte < 128; ++byte) ascii_[static_cast<size_t>(byte)] = role_of(table_.ascii(static_cast<char>(byte)));
  }

  Status split(Pieces& pieces) const override {
    return each_piece(pieces, [this](const Piece& piece, std::vector<Piece>& out) -> Status {
      const char* const end = piece.text.data() + piece.text.size();
      const char* word = piece.text.data();
      const auto put = [&](const char* from, const char* to) {
        if (from != to) out.push_back({std::string_view(from, static_cast<size_t>(to - from)), false});
      };
      for (const char* at = word; at != end;) {
        const char* const here = at;
        const Role role =
            static_cast<unsigned char>(*at) < 0x80 ? ascii_[static_cast<unsigned char>(*at++)] : role_of(table_.of(next_char(at)));
        if (role == Role::kInside) continue;
        put(word, here);
        if (role == Role::kAlone) put(here, at);
        word = at;
      }
      put(word, end);
      return {};
    });
  }

 private:
  enum class Role : uint8_t { kInside, kAlone, kBetween };
  static Role role_of(uint16_t classes) {
    return classes & kSpace ? Role::kBetween : classes & kPunctuation ? Role::kAlone : Role::kInside;
  }

  const CharTable& table_ = CharTable::get();
  std::array<Role, 128> ascii_{};
};

class Whitespace final : public PreTokenizer {
 public:
  Status split(Pieces& pieces) const override {
    return each_piece(pieces, [this](const Piece& piece, std::vector<Piece>& out) -> Status {
      Cutter cutter(piece, Behavior::kIsolated, out);
      const char* const begin = piece.text.data();
      const char* const end = begin + piece.text.size();
      const char* word = begin;
      Kind kind = Kind::kSpace;
      const auto put = [&](const char* to) {
        if (kind != Kind::kSpace) cutter.part(static_cast<size_t>(word - begin), static_cast<size_t>(to - begin), false);
      };
      for (const char* at = begin; at != end;) {
        const char* const here = at;
        const uint16_t classes = table_.of(next_char(at));
        const Kind now = classes & kWord ? Kind::kWord : classes & kSpace ? Kind::kSpace : Kind::kOther;
        if (now == kind) continue;
        put(here);
        word = here;
        kind = now;
      }
      put(end);
      return {};
    });
  }

 private:
  enum class Kind : uint8_t { kSpace, kWord, kOther };
  const CharTable& table_ = CharTable::get();
};

class ByteLevel final : public PreTokenizer {
 public:
  explicit ByteLevel(const ByteLevelRules& rules) : rules_(rules) {}

  Status split(Pieces& pieces) const override {
    auto& made = pieces.made;
    SERIN_CHECK(each_piece(pieces, [&](Piece piece, std::vector<Piece>& out) -> Status {
      if (rules_.add_prefix_space && !piece.text.starts_with(' ')) {
        made.push_back(" ");
        made.back() += piece.text;
        piece.text = made.back();
      }
      if (rules_.use_regex)
        split_like_gpt2(piece, out);
      else
        out.push_back(piece);
      return {};
    }));
    if (!rules_.spell) return {};
    for (Piece& piece : pieces.now) {
      made.push_back(spell_bytes(piece.text));
      piece.text = made.back();
    }
    return {};
  }

 private:
  ByteLevelRules rules_;
};

class Metaspace final : public PreTokenizer {
 public:
  Metaspace(std::string mark, Prepend prepend, bool cut) : mark_(std::move(mark)), prepend_(prepend), cut_(cut) {}

  Status split(Pieces& pieces) const override {
    auto& made = pieces.made;
    return each_piece(pieces, [&](Piece piece, std::vector<Piece>& out) -> Status {
      std::string marked;
      marked.reserve(piece.text.size() + mark_.size() * 2);
      const bool wanted = prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && piece.first);
      if (wanted && !piece.text.starts_with(' ') && !piece.text.starts_with(mark_)) marked = mark_;
      for (const char c : piece.text) {
        if (c == ' ')
          marked += mark_;
        else
          marked.push_back(c);
      }
      made.push_back(std::move(marked));
      piece.text = made.back();
      if (!cut_) {
        out.push_back(piece);
        return {};
      }
      Cutter cutter(piece, Behavior::kMergedWithNext, out);
      size_t from = 0;
      for (size_t at = piece.text.find(mark_); at != std::string_view::npos; at = piece.text.find(mark_, from)) {
        cutter.part(from, at, false);
        cutter.part(at, at + mark_.size(), true);
        from = at + mark_.size();
      }
      cutter.part(from, piece.text.size(), false);
      return {};
    });
  }

 private:
  std::string mark_;
  Prepend prepend_;
  bool cut_;
};

/// each_match(piece, take) calls take(begin, end).
template <class F>
Status cut_at_matches(Pieces& pieces, Behavior behavior, bool invert, F&& each_match) {
  return each_piece(pieces, [&](const Piece& piece, std::vector<Piece>& out) -> Status {
    Cutter cutter(piece, behavior, out);
    size_t from = 0;
    SERIN_CHECK(each_match(piece.text, [&](size_t begin, size_t end) {
      cutter.part(from, begin, invert);
      cutter.part(begin, end, !invert);
      from = end;
    }));
    cutter.part(from, piece.text.size(), invert);
    return {};
  });
}

class RegexSplit final : public PreTokenizer {
 public:
  RegexSplit(Regex pattern, Behavior behavior, bool invert) : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  Status split(Pieces& pieces) const override {
    Regex::Search search(pattern_);
    return cut_at_matches(pieces, behavior_, invert_, [&](std::string_view text, auto&& take) { return search.each_match(text, take); });
  }

 private:
  Regex pattern_;
  Behavior behavior_;
  bool invert_;
};

class StringSplit final : public PreTokenizer {
 public:
  StringSplit(std::string separator, Behavior behavior, bool invert)
      : separator_(std::move(separator)), behavior_(behavior), invert_(invert) {}
  Status split(Pieces& pieces) const override {
    return cut_at_matches(pieces, behavior_, invert_, [this](std::string_view text, auto&& take) -> Status {
      for (size_t at = text.find(separator_); at != std::string_view::npos; at = text.find(separator_, at + separator_.size()))
        take(at, at + separator_.size());
      return {};
    });
  }

 private:
  std::string separator_;
  Behavior behavior_;
  bool invert_;
};

class Steps final : public PreTokenizer {
 public:
  explicit Steps(std::vector<std::unique_ptr<PreTokenizer>> all) : all_(std::move(all)) {}
  Status split(Pieces& pieces) const override {
    for (const auto& one : all_) SERIN_CHECK(one->split(pieces));
    return {};
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> all_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_bert_splitter() { return std::make_unique<BertSplitter>(); }
std::unique_ptr<PreTokenizer> make_byte_level(const ByteLevelRules& rules) { return std::make_unique<ByteLevel>(rules); }
std::unique_ptr<PreTokenizer> make_whitespace() { return std::make_unique<Whitespace>(); }
std::unique_ptr<PreTokenizer> make_whitespace_split() { return std::make_unique<ByClass>(kSpace, Behavior::kRemoved); }
std::unique_ptr<PreTokenizer> make_punctuation(Behavior behavior) { return std::make_unique<ByClass>(kPunctuation, behavior); }

std::unique_ptr<PreTokenizer> make_digits(bool each_alone) {
  return std::make_unique<ByClass>(kNumber, each_alone ? Behavior::kIsolated : Behavior::kContiguous);
}

std::unique_ptr<PreTokenizer> make_metaspace(std::string mark, Prepend prepend, bool split) {
  return std::make_unique<Metaspace>(std::move(mark), prepend, split);
}

std::unique_ptr<PreTokenizer> make_split(Regex pattern, Behavior behavior, bool invert) {
  return std::make_unique<RegexSplit>(std::move(pattern), behavior, invert);
}

std::unique_ptr<PreTokenizer> make_split(std::string separator, Behavior behavior, bool invert) {
  return std::make_unique<StringSplit>(std::move(separator), behavior, invert);
}

std::unique_ptr<PreTokenizer> make_pre_tokenizers(std::vector<std::unique_ptr<PreTokenizer>> all) {
  return std::make_unique<Steps>(std::move(all));
}

}  // namespace serin::steps::text
