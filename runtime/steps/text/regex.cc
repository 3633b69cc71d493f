// regex.cc: translates what differs between Oniguruma and PCRE2, and searches with limits.

#define PCRE2_CODE_UNIT_WIDTH 8

#include "runtime/steps/text/regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>

#include "runtime/steps/text/unicode.h"

namespace serin::steps::text {
namespace {

constexpr size_t kLongestPattern = 16 << 10;
constexpr uint32_t kSteps = 20'000'000;
constexpr std::string_view kSpaces = R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kWords =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

class Translation {
 public:
  explicit Translation(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (at_ < pattern_.size()) {
      const std::string_view rest = pattern_.substr(at_);
      if (rest[0] == '\\') {
        escape(rest.substr(0, 2));
        continue;
      }
      if (class_begin_ != kOutside)
        SERIN_CHECK(inside_class(rest));
      else if (rest[0] == '[')
        open_class(rest);
      else if (is_dotall(rest))
        return refused("(?m)");
      else
        copy(1);
    }
    return std::move(out_);
  }

 private:
  static constexpr size_t kOutside = std::string_view::npos;

  static Error refused(std::string_view what) { return {Code::kUnsupported, fmt::format("{} is not supported", what)}; }

  /// (?m), (?im-x: and so on; in Ruby m lets the dot match line ends.
  static bool is_dotall(std::string_view rest) {
    if (!rest.starts_with("(?")) return false;
    const size_t end = rest.find_first_not_of("imx", 2);
    return end != std::string_view::npos && (rest[end] == ')' || rest[end] == ':' || rest[end] == '-') &&
           rest.substr(0, end).find('m') != std::string_view::npos;
  }

  void copy(size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }

  void escape(std::string_view pair) {
    const char letter = pair.size() == 2 ? pair[1] : '\0';
    const bool inside = class_begin_ != kOutside;
    const auto put = [&](std::string_view contents, bool negated) {
      out_ += inside ? std::string(contents) : fmt::format("[{}{}]", negated ? "^" : "", contents);
      at_ += 2;
    };
    if (letter == 's' || (letter == 'S' && !inside)) return put(kSpaces, letter == 'S');
    if (letter == 'w' || (letter == 'W' && !inside)) return put(kWords, letter == 'W');
    if (letter == 'h' || (letter == 'H' && !inside)) return put("0-9a-fA-F", letter == 'H');
    copy(pair.size());
  }

  void open_class(std::string_view rest) {
    class_begin_ = at_;
    size_t head = 1;
    if (rest.substr(head).starts_with('^')) ++head;
    if (rest.substr(head).starts_with(']')) ++head;  // an ordinary character in the first place
    copy(head);
  }

  Status inside_class(std::string_view rest) {
    if (rest.starts_with("[:")) {
      const size_t end = rest.find(":]");
      if (end != std::string_view::npos) {
        copy(end + 2);
        return {};
      }
    }
    if (rest[0] == '[') return refused("a class in a class");
    if (rest.starts_with("&&")) return refused("the intersection of classes");
    if (rest[0] == ']') class_begin_ = kOutside;
    copy(1);
    return {};
  }

  std::string_view pattern_;
  std::string out_;
  size_t at_ = 0;
  size_t class_begin_ = kOutside;
};

std::string reason(int error) {
  std::array<PCRE2_UCHAR, 200> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct Regex::Compiled {
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
  std::string pattern;

  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }
};

Result<Regex> Regex::compile(std::string_view pattern) {
  const auto named = [pattern](const Error& error) { return error.in(fmt::format("regular expression '{}'", pattern.substr(0, 200))); };
  if (pattern.size() > kLongestPattern) return Error{Code::kTooLarge, fmt::format("a regular expression of {} bytes", pattern.size())};
  const auto translated = Translation(pattern).run();
  if (!translated) return named(translated.error());
  auto compiled = std::make_shared<Compiled>();
  compiled->pattern = pattern;
  int error = 0;
  PCRE2_SIZE at = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (!compiled->code) return named({Code::kCorrupt, reason(error)});
  compiled->limits = pcre2_match_context_create(nullptr);
  if (!compiled->limits) return named({Code::kInternal, "no memory"});
  pcre2_set_match_limit(compiled->limits, kSteps);
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);  // where the system forbids it, matches are interpreted
  Regex regex;
  regex.compiled_ = std::move(compiled);
  return regex;
}

Regex::Search::Search(const Regex& regex)
    : compiled_(*regex.compiled_), match_(pcre2_match_data_create_from_pattern(compiled_.code, nullptr)) {}

Regex::Search::~Search() { pcre2_match_data_free(static_cast<pcre2_match_data*>(match_)); }

Result<bool> Regex::Search::next(std::string_view text, size_t from, size_t& begin, size_t& end) {
  auto* const match = static_cast<pcre2_match_data*>(match_);
  if (!match) return Error{Code::kInternal, "no memory for a match"};
  const auto search = [&](uint32_t options) {
    return pcre2_match(compiled_.code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK | options, match,
                       compiled_.limits);
  };
  int found = search(0);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = search(PCRE2_NO_JIT);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) return Error{Code::kTooLarge, fmt::format("regular expression '{}': {}", compiled_.pattern.substr(0, 200), reason(found))};
  const PCRE2_SIZE* const place = pcre2_get_ovector_pointer(match);
  begin = place[0];
  end = place[1];
  if (begin < from || end < begin)
    return Error{Code::kUnsupported, fmt::format("regular expression '{}': \\K is not supported", compiled_.pattern.substr(0, 200))};
  return true;
}

size_t Regex::Search::behind(std::string_view text, size_t at) { return at < text.size() ? at + char_bytes(text[at]) : at + 1; }

}  // namespace serin::steps::text
