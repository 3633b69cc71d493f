// unicode.cc: the table of characters, normalisation forms, lower case, grapheme clusters, all from utf8proc.
//
// utf8proc's own normalisation sorts combining marks in quadratic time, which a client could use; here they are sorted by std::stable_sort.

#include "runtime/steps/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "runtime/steps/text/unicode_differences.h"

namespace serin::steps::text {
namespace {

constexpr char32_t kCodes = 0x110000;
constexpr char32_t kCapitalDottedI = 0x130;

bool is_white_space(char32_t code) {
  return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_ideograph(char32_t code) {
  constexpr std::pair<char32_t, char32_t> kBlocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                                                       {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return std::ranges::any_of(kBlocks, [code](const auto& block) { return code >= block.first && code <= block.second; });
}

/// Symbols that are letters for regular expressions: letters in circles and squares.
bool is_enclosed_letter(char32_t code) {
  return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
         (code >= 0x1F170 && code <= 0x1F189);
}

uint16_t general_category(char32_t code, utf8proc_propval_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return kLetter | kWord;
    case UTF8PROC_CATEGORY_MN: return kMark | kNonspacing | kWord;
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return kMark | kWord;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL: return kNumber | kWord;
    case UTF8PROC_CATEGORY_NO: return kNumber;
    case UTF8PROC_CATEGORY_PC: return kPunctuation | kWord;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return code < 0x80 ? kPunctuation : is_enclosed_letter(code) ? kWord : 0;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO: return code == '\t' || code == '\n' || code == '\r' ? 0 : kControl;
    default: return 0;
  }
}

/// The classes that the Rust library sees the other way round.
uint16_t difference_of(char32_t code) {
  const auto* const found = std::ranges::lower_bound(kUnicodeDifferences, code, {}, &UnicodeDifference::last);
  return found != kUnicodeDifferences.end() && found->first <= code ? found->classes : 0;
}

uint16_t classes_of(char32_t code) {
  const auto point = static_cast<utf8proc_int32_t>(code);
  const utf8proc_property_t& property = *utf8proc_get_property(point);
  uint16_t classes = general_category(code, property.category);
  if (is_white_space(code)) classes |= kSpace;
  if (is_ideograph(code)) classes |= kIdeograph;
  if (code == 0x200C || code == 0x200D) classes |= kWord;  // joiners
  if (property.decomp_seqindex != UINT16_MAX || (code >= 0xAC00 && code < 0xD7A4)) classes |= kDecomposes;
  if (utf8proc_tolower(point) != point) classes |= kLowers;
  if (property.combining_class != 0) classes |= kReorders;
  return classes ^ difference_of(code);
}

int combining_class(int32_t code) { return utf8proc_get_property(code)->combining_class; }

void append_decomposed(char32_t code, int options, std::vector<int32_t>& codes) {
  std::array<utf8proc_int32_t, 32> some{};  // the longest one has 18
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), some.data(), some.size(),
                                             static_cast<utf8proc_option_t>(options), &boundary);
  for (utf8proc_ssize_t i = 0; i < count && i < static_cast<utf8proc_ssize_t>(some.size()); ++i)
    codes.push_back(some[static_cast<size_t>(i)]);
}

void decompose_as(std::string_view text, int options, std::vector<int32_t>& codes) {
  const CharTable& table = CharTable::get();
  codes.clear();
  codes.reserve(text.size());
  bool marks = false;
  const char* at = text.data();
  for (const char* const end = at + text.size(); at != end;) {
    const char32_t code = next_char(at);
    const uint16_t classes = code < 0x80 ? 0 : table.of(code);
    marks |= (classes & (kReorders | kDecomposes)) != 0;
    if (classes & kDecomposes)
      append_decomposed(code, options, codes);
    else
      codes.push_back(static_cast<int32_t>(code));
  }
  if (!marks) return;
  for (auto begin = codes.begin(); begin != codes.end();) {
    if (*begin < 0x300 || combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, codes.end(), [](int32_t code) { return combining_class(code) == 0; });
    if (end - begin > 1) std::stable_sort(begin, end, [](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

}  // namespace

CharTable::CharTable() : index_(kCodes >> 8) {
  std::map<std::vector<uint16_t>, uint16_t> known;
  std::vector<uint16_t> block(256);
  for (char32_t first = 0; first < kCodes; first += 256) {
    for (char32_t i = 0; i < 256; ++i) block[i] = classes_of(first + i);
    const auto [place, added] = known.emplace(block, static_cast<uint16_t>(known.size()));
    if (added) blocks_.insert(blocks_.end(), block.begin(), block.end());
    index_[first >> 8] = place->second;
  }
}

const CharTable& CharTable::get() {
  static const CharTable table;
  return table;
}

size_t count_chars(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_ascii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

void append_lower(char32_t code, std::string& out) {
  if (code == kCapitalDottedI) {
    out += "i\u0307";
    return;
  }
  encode_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), out);
}

void decompose(std::string_view text, std::vector<int32_t>& codes) { decompose_as(text, UTF8PROC_DECOMPOSE, codes); }

std::string normalize(std::string_view text, Form form) {
  if (is_ascii(text)) return std::string(text);
  const bool compatible = form == Form::kNfkc || form == Form::kNfkd;
  const bool composed = form == Form::kNfc || form == Form::kNfkc;
  std::vector<int32_t> codes;
  decompose_as(text, UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0), codes);
  auto count = static_cast<utf8proc_ssize_t>(codes.size());
  if (composed) count = utf8proc_normalize_utf32(codes.data(), count, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i) encode_utf8(static_cast<char32_t>(codes[static_cast<size_t>(i)]), out);
  return out;
}

bool grapheme_break(char32_t before, char32_t after, int32_t& state) {
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before), static_cast<utf8proc_int32_t>(after), &state);
}

}  // namespace serin::steps::text
