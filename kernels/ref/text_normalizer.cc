// text_normalizer.cc: StringNormalizer: drops stop words and changes case, by the rules of C.UTF-8 whatever `locale` says (Turkish and
// Lithuanian are the languages that would differ). Text that is not UTF-8 keeps its bytes.

#include <locale.h>
#include <clocale>
#include <cstdint>
#include <cwctype>
#include <memory>
#include <unordered_set>

#include "kernels/ref/text_families.h"

namespace serin::kernels::ref {

namespace {

enum class Case : uint8_t { kKeep, kLower, kUpper };

class CaseChange {
 public:
  CaseChange() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {}
  ~CaseChange() {
    if (locale_) freelocale(locale_);
  }
  CaseChange(const CaseChange&) = delete;
  CaseChange& operator=(const CaseChange&) = delete;

  std::string operator()(const std::string& text, Case to) const {
    if (to == Case::kKeep) return text;
    std::string result;
    for (size_t i = 0; i < text.size();) {
      char32_t code = 0;
      const size_t length = decode(text, i, code);
      if (length == 0)
        result += text[i++];
      else
        encode(changed(code, to), result);
      i += length;
    }
    return result;
  }

 private:
  char32_t changed(char32_t code, Case to) const {
    if (!locale_) return code;
    const auto wide = static_cast<wint_t>(code);
    return static_cast<char32_t>(to == Case::kLower ? towlower_l(wide, locale_) : towupper_l(wide, locale_));
  }

  /// Bytes of the character at `i`, 0 where there is no valid one.
  static size_t decode(const std::string& text, size_t i, char32_t& code) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    if (length == 0 || lead >= 0xf5 || i + length > text.size()) return 0;
    code = length == 1 ? lead : lead & (0x7fu >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return 0;
      code = code << 6 | (next & 0x3f);
    }
    return length;
  }

  static void encode(char32_t code, std::string& text) {
    if (code < 0x80) {
      text += static_cast<char>(code);
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr unsigned char kLeads[] = {0, 0xc0, 0xe0, 0xf0};
    text += static_cast<char>(kLeads[more] | code >> (6 * more));
    for (int k = more - 1; k >= 0; --k) text += static_cast<char>(0x80 | (code >> (6 * k) & 0x3f));
  }

  locale_t locale_;
};

std::optional<Case> case_of(const std::string& action) {
  if (action == "NONE") return Case::kKeep;
  if (action == "LOWER") return Case::kLower;
  if (action == "UPPER") return Case::kUpper;
  return std::nullopt;
}

}  // namespace

/// x [c] or [1, c] -> what is left of it; where nothing is, one empty string.
Prepared string_normalizer(const GenericDesc& desc, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  if (desc.inputs[0].dtype != DType::kString) return refuse(why, "the operand must be strings");
  if (x.rank() != 1 && !(x.rank() == 2 && x[0] == 1)) return refuse(why, "needs [c] or [1, c], got " + x.str());
  const std::string action = desc.attributes.text("case_change_action", "NONE");
  const auto to = case_of(action);
  if (!to) return refuse(why, "case_change_action is '" + action + "', it must be LOWER, UPPER or NONE");
  const bool case_sensitive = desc.attributes.integer("is_case_sensitive", 0) != 0;
  const auto change = std::make_shared<const CaseChange>();
  const Case compared = case_sensitive ? Case::kKeep : Case::kLower;
  std::unordered_set<std::string> stop_words;
  for (const std::string& word : desc.attributes.texts("stopwords")) stop_words.insert((*change)(word, compared));

  return make_kernel([=, to = *to, stop_words = std::move(stop_words)](Stream&, Inputs in, Outputs out) -> Fault {
    const auto y = out[0].span<std::string>();
    size_t count = 0;
    for (const std::string& text : strings_of(in[0])) {
      if (stop_words.contains((*change)(text, compared))) continue;
      if (count == y.size()) return "the output is too small";
      y[count++] = (*change)(text, to);
    }
    if (count == 0 && y.empty()) return "the output is too small";
    if (count == 0) y[count++].clear();
    out[0].shape[out[0].shape.rank() - 1] = static_cast<int64_t>(count);
    return kOk;
  });
}

}  // namespace serin::kernels::ref
