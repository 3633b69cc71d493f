// text_normalizer.cc: StringNormalizer: drops stop words and changes case, by the rules of C.UTF-8 whatever `locale` says (Turkish and
// Lithuanian are the languages that would differ). Text that is not UTF-8 keeps its bytes.

#include <locale.h>
#include <clocale>
#include <cstdint>
#include <cwctype>
#include <memory>
#include <unordered_set>

#include "kernels/ref/text_families.h"
#include "kernels/utf8.h"

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
      const size_t length = decode_utf8(std::string_view(text).substr(i), code);
      if (length == 0)
        result += text[i++];
      else
        encode_utf8(changed(code, to), result);
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

  locale_t locale_;
};

std::optional<Case> case_of(const std::string& action) {
  if (action == "NONE") return Case::kKeep;
  if (action == "LOWER") return Case::kLower;
  if (action == "UPPER") return Case::kUpper;
  return std::nullopt;
}

}  // namespace

/// x [c] or [1, c] -> what stop words leave of it; where that is nothing, one empty string.
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
    const bool all_dropped = count == 0 && !stop_words.empty();
    if (all_dropped && y.empty()) return "the output is too small";
    if (all_dropped) y[count++].clear();
    out[0].shape[out[0].shape.rank() - 1] = static_cast<int64_t>(count);
    return kOk;
  });
}

}  // namespace serin::kernels::ref
