// gpt2_words.cc: GPT-2's expression as a scanner. Each character is a letter, a number, a space or something else, and words are runs of one kind.

#include <array>

#include "runtime/steps/text/pre_tokenizer.h"
#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

enum class CharKind : uint8_t { kLetter, kNumber, kSpace, kOther };

class Gpt2Words {
 public:
  explicit Gpt2Words(std::string_view text) : begin_(text.data()), end_(begin_ + text.size()) {
    for (int byte = 0; byte < 128; ++byte) ascii_[static_cast<size_t>(byte)] = kind_of(table_.ascii(static_cast<char>(byte)));
  }

  /// The end of the word that begins at `at`.
  const char* word(const char* at) const {
    if (*at == '\'')
      if (const size_t size = contraction(at); size > 0) return at + size;
    const char* behind = at;
    CharKind kind = read(behind);
    if (*at == ' ' && behind != end_) {
      const char* second = behind;
      if (const CharKind next = read(second); next != CharKind::kSpace) {
        kind = next;
        behind = second;
      }
    }
    if (kind != CharKind::kSpace) return run(behind, kind);
    // Spaces: all but the last one, which belongs to the word behind, unless the text ends there or it is the only one.
    const char* last = at;
    while (behind != end_) {
      const char* more = behind;
      if (read(more) != CharKind::kSpace) return last == at ? behind : last;
      last = behind;
      behind = more;
    }
    return behind;
  }

 private:
  static CharKind kind_of(uint16_t classes) {
    return classes & kLetter   ? CharKind::kLetter
           : classes & kNumber ? CharKind::kNumber
           : classes & kSpace  ? CharKind::kSpace
                               : CharKind::kOther;
  }

  CharKind read(const char*& at) const {
    if (static_cast<unsigned char>(*at) < 0x80) return ascii_[static_cast<unsigned char>(*at++)];
    return kind_of(table_.of(next_char(at)));
  }

  const char* run(const char* at, CharKind kind) const {
    while (at != end_) {
      const char* more = at;
      if (read(more) != kind) break;
      at = more;
    }
    return at;
  }

  size_t contraction(const char* at) const {
    const std::string_view rest(at + 1, static_cast<size_t>(end_ - at - 1));
    if (rest.empty()) return 0;
    for (const char letter : {'s', 't', 'm', 'd'})
      if (rest[0] == letter) return 2;
    for (const std::string_view two : {"re", "ve", "ll"})
      if (rest.starts_with(two)) return 3;
    return 0;
  }

  const CharTable& table_ = CharTable::get();
  std::array<CharKind, 128> ascii_{};
  const char* begin_;
  const char* end_;
};

}  // namespace

void split_like_gpt2(const Piece& piece, std::vector<Piece>& words) {
  const Gpt2Words scanner(piece.text);
  const char* const end = piece.text.data() + piece.text.size();
  for (const char* at = piece.text.data(); at != end;) {
    const char* const behind = scanner.word(at);
    words.push_back({std::string_view(at, static_cast<size_t>(behind - at)), piece.first && at == piece.text.data()});
    at = behind;
  }
}

}  // namespace serin::steps::text
