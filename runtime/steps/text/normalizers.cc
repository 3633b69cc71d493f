// normalizers.cc: the small ones, one class each.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "runtime/steps/text/byte_alphabet.h"
#include "runtime/steps/text/normalizer.h"

namespace serin::steps::text {
namespace {

/// A normalizer that a function does.
class Rewriting final : public Normalizer {
 public:
  using Rewrite = std::function<Status(std::string&)>;
  explicit Rewriting(Rewrite rewrite) : rewrite_(std::move(rewrite)) {}
  Status apply(std::string& text) const override { return rewrite_(text); }

 private:
  Rewrite rewrite_;
};

std::unique_ptr<Normalizer> rewriting(Rewriting::Rewrite rewrite) { return std::make_unique<Rewriting>(std::move(rewrite)); }

/// For rules of one character: put(code, bytes, out) appends what it becomes.
template <class F>
std::unique_ptr<Normalizer> by_character(F put) {
  return rewriting([put](std::string& text) -> Status {
    std::string out;
    out.reserve(text.size());
    const char* at = text.data();
    for (const char* const end = at + text.size(); at != end;) {
      const char* const begin = at;
      const char32_t code = next_char(at);
      put(code, std::string_view(begin, static_cast<size_t>(at - begin)), out);
    }
    text = std::move(out);
    return {};
  });
}

Status too_long() { return Error{Code::kTooLarge, fmt::format("the normalized text has more than {} bytes", kMostNormalized)}; }

bool nmt_drops(char32_t code) {
  return (code >= 1 && code <= 8) || code == 0xB || (code >= 0xE && code <= 0x1F) || code == 0x7F || code == 0x8F || code == 0x9F;
}

bool nmt_spaces(char32_t code) {
  return code == 9 || code == 0xA || code == 0xC || code == 0xD || code == 0x1680 || (code >= 0x200B && code <= 0x200F) || code == 0x2028 ||
         code == 0x2029 || code == 0x2581 || code == 0xFEFF || code == 0xFFFD;
}

class Chain final : public Normalizer {
 public:
  explicit Chain(std::vector<std::unique_ptr<Normalizer>> all) : all_(std::move(all)) {}
  Status apply(std::string& text) const override {
    for (const auto& one : all_) SERIN_CHECK(one->apply(text));
    return {};
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> all_;
};

}  // namespace

std::unique_ptr<Normalizer> make_form(Form form) {
  return rewriting([form](std::string& text) -> Status {
    if (!is_ascii(text)) text = normalize(text, form);
    return {};
  });
}

std::unique_ptr<Normalizer> make_lower_case() {
  return by_character([](char32_t code, std::string_view bytes, std::string& out) {
    if (CharTable::get().of(code) & kLowers)
      append_lower(code, out);
    else
      out += bytes;
  });
}

std::unique_ptr<Normalizer> make_strip_accents() {
  return by_character([](char32_t code, std::string_view bytes, std::string& out) {
    if (!(CharTable::get().of(code) & kMark)) out += bytes;
  });
}

std::unique_ptr<Normalizer> make_strip(bool left, bool right) {
  return rewriting([left, right](std::string& text) -> Status {
    const CharTable& table = CharTable::get();
    size_t begin = text.size(), end = 0;  // of what is no space
    const char* at = text.data();
    while (at != text.data() + text.size()) {
      const auto here = static_cast<size_t>(at - text.data());
      if (table.of(next_char(at)) & kSpace) continue;
      begin = std::min(begin, here);
      end = static_cast<size_t>(at - text.data());
    }
    const size_t from = left ? begin : 0;
    const size_t to = right ? std::max(end, from) : text.size();
    text = text.substr(from, to - from);
    return {};
  });
}

std::unique_ptr<Normalizer> make_prepend(std::string prefix) {
  return rewriting([prefix = std::move(prefix)](std::string& text) -> Status {
    if (!text.empty()) text.insert(0, prefix);
    return {};
  });
}

std::unique_ptr<Normalizer> make_replace(std::string what, std::string by) {
  return rewriting([what = std::move(what), by = std::move(by)](std::string& text) -> Status {
    size_t found = text.find(what);
    if (found == std::string::npos) return {};
    std::string out;
    out.reserve(text.size());
    size_t from = 0;
    for (; found != std::string::npos; found = text.find(what, from)) {
      out.append(text, from, found - from);
      out += by;
      if (out.size() > kMostNormalized) return too_long();
      from = found + what.size();
    }
    out.append(text, from);
    text = std::move(out);
    return {};
  });
}

std::unique_ptr<Normalizer> make_replace(Regex what, std::string by) {
  return rewriting([what = std::move(what), by = std::move(by)](std::string& text) -> Status {
    std::string out;
    size_t from = 0;
    bool too_large = false;
    Regex::Search search(what);
    SERIN_CHECK(search.each_match(text, [&](size_t begin, size_t end) {
      too_large |= out.size() > kMostNormalized;
      if (too_large) return;
      out.append(text, from, begin - from);
      out += by;
      from = end;
    }));
    if (too_large) return too_long();
    if (from == 0) return {};
    out.append(text, from);
    text = std::move(out);
    return {};
  });
}

std::unique_ptr<Normalizer> make_nmt() {
  return by_character([](char32_t code, std::string_view bytes, std::string& out) {
    if (nmt_drops(code)) return;
    out += nmt_spaces(code) ? " " : bytes;
  });
}

std::unique_ptr<Normalizer> make_byte_spelling() {
  return rewriting([](std::string& text) -> Status {
    text = spell_bytes(text);
    return {};
  });
}

std::unique_ptr<Normalizer> make_normalizers(std::vector<std::unique_ptr<Normalizer>> all) {
  return std::make_unique<Chain>(std::move(all));
}

}  // namespace serin::steps::text
