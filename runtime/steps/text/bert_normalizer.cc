// bert_normalizer.cc: BERT's cleaning in one pass. ASCII goes by a table of bytes, other characters by their classes.
//
// The steps follow each other for each character, which is the same as one after the other for the text, but for marks that NFD puts in another
// order and that are kept. They are rare: the second path does these texts step by step.

#include <array>

#include "runtime/steps/text/normalizer.h"

namespace serin::steps::text {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const BertCleaning& rules) : rules_(rules) {
    for (int byte = 0; byte < 128; ++byte) {
      const auto c = static_cast<char>(byte);
      const uint16_t classes = table_.ascii(c);
      char& to = ascii_[static_cast<size_t>(byte)];
      to = c;
      if (rules.clean && (byte == 0 || classes & kControl))
        to = kDropped;
      else if (rules.clean && classes & kSpace)
        to = ' ';
      else if (rules.lower_case && c >= 'A' && c <= 'Z')
        to = static_cast<char>(c - 'A' + 'a');
    }
  }

  Status apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size() + text.size() / 2);
    std::vector<int32_t> codes;
    const char* at = text.data();
    for (const char* const end = at + text.size(); at != end;) {
      if (static_cast<unsigned char>(*at) < 0x80) {
        const char to = ascii_[static_cast<unsigned char>(*at++)];
        if (to != kDropped) out.push_back(to);
        continue;
      }
      const char* const begin = at;
      const char32_t code = next_char(at);
      const uint16_t classes = table_.of(code);
      if (rules_.strip_accents && (classes & (kReorders | kNonspacing)) == kReorders) {
        step_by_step(text);
        return {};
      }
      put(code, classes, std::string_view(begin, static_cast<size_t>(at - begin)), codes, out);
    }
    text = std::move(out);
    return {};
  }

 private:
  static constexpr char kDropped = '\x80';  // no value of ASCII

  void put(char32_t code, uint16_t classes, std::string_view bytes, std::vector<int32_t>& codes, std::string& out) const {
    if (rules_.clean) {
      if (classes & kControl || code == kReplacement) return;
      if (classes & kSpace) {
        out.push_back(' ');
        return;
      }
    }
    const bool alone = rules_.ideographs && classes & kIdeograph;
    if (alone) out.push_back(' ');
    if (rules_.strip_accents && classes & kDecomposes) {
      decompose(bytes, codes);
      for (const int32_t part : codes) put_stripped(static_cast<char32_t>(part), out);
    } else if (!rules_.strip_accents || !(classes & kNonspacing)) {
      if (rules_.lower_case && classes & kLowers)
        append_lower(code, out);
      else
        out += bytes;
    }
    if (alone) out.push_back(' ');
  }

  void put_stripped(char32_t code, std::string& out) const {
    const uint16_t classes = table_.of(code);
    if (classes & kNonspacing) return;
    if (rules_.lower_case && classes & kLowers)
      append_lower(code, out);
    else
      encode_utf8(code, out);
  }

  void step_by_step(std::string& text) const {
    std::string cleaned;
    const char* at = text.data();
    for (const char* const end = at + text.size(); at != end;) {
      const char* const begin = at;
      const char32_t code = next_char(at);
      const uint16_t classes = table_.of(code);
      if (rules_.clean && (classes & kControl || code == kReplacement || code == 0)) continue;
      const bool alone = rules_.ideographs && classes & kIdeograph;
      if (alone) cleaned.push_back(' ');
      if (rules_.clean && classes & kSpace)
        cleaned.push_back(' ');
      else
        cleaned.append(begin, at);
      if (alone) cleaned.push_back(' ');
    }
    std::vector<int32_t> codes;
    decompose(cleaned, codes);
    text.clear();
    for (const int32_t code : codes) put_stripped(static_cast<char32_t>(code), text);
  }

  const CharTable& table_ = CharTable::get();
  BertCleaning rules_;
  std::array<char, 128> ascii_{};
};

}  // namespace

std::unique_ptr<Normalizer> make_bert_normalizer(const BertCleaning& rules) { return std::make_unique<BertNormalizer>(rules); }

}  // namespace serin::steps::text
