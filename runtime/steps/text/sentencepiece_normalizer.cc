// sentencepiece_normalizer.cc: one pass, in which the replacement of one place never touches that of another.

#include "runtime/steps/text/sentencepiece_normalizer.h"

#include <utility>

#include "runtime/steps/text/trie.h"
#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

class SentencePieceNormalizer final : public Normalizer {
 public:
  explicit SentencePieceNormalizer(SentencePieceCleaning rules) : rules_(std::move(rules)) {
    Trie::Keys keys;
    for (const std::string& piece : rules_.kept) keys.emplace_back(piece, 0);
    kept_ = Trie(std::move(keys));
  }

  Status apply(std::string& text) const override {
    const std::string_view space = rules_.mark_spaces ? kSpaceMark : " ";
    std::string_view rest = text;
    while (rules_.remove_extra_spaces && !rest.empty()) {
      const auto [size, becomes] = first_of(rest);
      if (becomes != " ") break;
      rest.remove_prefix(size);
    }
    std::string out;
    out.reserve(text.size() * 2);
    if (!rest.empty() && rules_.space_in_front) out = space;
    bool after_space = rules_.remove_extra_spaces;
    while (!rest.empty()) {
      auto [size, becomes] = first_of(rest);
      while (after_space && becomes.starts_with(' ')) becomes.remove_prefix(1);
      for (const char c : becomes) {
        if (c == ' ')
          out += space;
        else
          out.push_back(c);
      }
      if (!becomes.empty()) after_space = becomes.ends_with(' ');
      if (!rules_.remove_extra_spaces) after_space = false;
      if (out.size() > kMostNormalized) return Error{Code::kTooLarge, "the normalized text is too long"};
      rest.remove_prefix(size);
    }
    while (rules_.remove_extra_spaces && out.ends_with(space)) out.erase(out.size() - space.size());
    text = std::move(out);
    return {};
  }

 private:
  /// How much of the text is taken, and what it becomes.
  std::pair<size_t, std::string_view> first_of(std::string_view text) const {
    if (const auto kept = kept_.longest(text); kept.value >= 0) return {kept.bytes, text.substr(0, kept.bytes)};
    if (const auto match = rules_.replacements.longest(text); match.bytes > 0) return {match.bytes, match.replacement};
    const size_t size = char_bytes(text[0]);
    return {size, text.substr(0, size)};
  }

  SentencePieceCleaning rules_;
  Trie kept_;
};

}  // namespace

std::unique_ptr<Normalizer> make_sentencepiece_normalizer(SentencePieceCleaning rules) {
  return std::make_unique<SentencePieceNormalizer>(std::move(rules));
}

}  // namespace serin::steps::text
