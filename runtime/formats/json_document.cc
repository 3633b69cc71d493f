// json_document.cc: parses JSON into one list of values, without recursion.

#include "runtime/formats/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/number.h"
#include "runtime/base/utf8.h"

namespace serin::formats {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<uint32_t> hex4(std::string_view text) {
  uint32_t code = 0;
  if (text.size() < 4) return std::nullopt;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + 4, code, 16);
  return failure == std::errc() && end == text.data() + 4 ? std::optional(code) : std::nullopt;
}

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

constexpr std::string_view kShort = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";

/// The characters of a string; half a surrogate pair becomes U+FFFD.
std::string unescape(std::string_view raw) {
  std::string out;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out.push_back(raw[i]);
      continue;
    }
    if (raw[++i] != 'u') {
      out.push_back(kMeant[kShort.find(raw[i])]);
      continue;
    }
    uint32_t code = *hex4(raw.substr(i + 1));
    i += 4;
    if (code >= 0xD800 && code < 0xDC00 && raw.substr(i + 1).starts_with("\\u")) {
      const uint32_t low = *hex4(raw.substr(i + 3));
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        i += 6;
      }
    }
    append_utf8(out, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
  }
  return out;
}

template <class T>
std::optional<T> convert(std::string_view digits) {
  T value{};
  if (digits == "NaN") return std::numeric_limits<T>::quiet_NaN();
  if (digits.ends_with("Infinity")) return digits[0] == '-' ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure != std::errc::result_out_of_range) return value;
  const size_t exponent = digits.find_first_of("eE");
  const bool tiny = exponent == std::string_view::npos ? digits.find_first_of("123456789") > digits.find('.') : digits[exponent + 1] == '-';
  const T size = tiny ? T{0} : std::numeric_limits<T>::infinity();
  return digits[0] == '-' ? -size : size;
}

}  // namespace

/// One pass over the text. Open arrays and objects are on a stack.
class JsonParser {
 public:
  explicit JsonParser(std::string text) { content_->text = std::move(text); }

  Result<JsonDocument> run() {
    if (content_->text.size() >= std::numeric_limits<uint32_t>::max()) return Error{Code::kTooLarge, "JSON of 4 GiB or more"};
    if (!is_utf8(content_->text)) return Error{Code::kCorrupt, "JSON that is not UTF-8"};
    do {
      SERIN_CHECK(next());
    } while (!open_.empty());
    skip_spaces();
    if (at_ != content_->text.size()) return problem("more text behind the end");
    for (const Value& value : content_->values)
      if (value.kind == Kind::kObject) SERIN_CHECK(check_keys(value));
    JsonDocument document;
    document.content_ = std::move(content_);
    return document;
  }

 private:
  using Kind = JsonDocument::Kind;
  using Value = JsonDocument::Value;

  Error problem(std::string_view what) const { return {Code::kCorrupt, fmt::format("JSON, byte {}: {}", at_, what)}; }
  char peek() const { return at_ < content_->text.size() ? content_->text[at_] : '\0'; }
  std::string_view rest() const { return std::string_view(content_->text).substr(at_); }

  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void skip_spaces() {
    while (at_ < content_->text.size() && is_space(content_->text[at_])) ++at_;
  }

  Value& push(Kind kind, size_t begin, size_t size) {
    content_->values.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(size), 0, kind});
    content_->values.back().next = static_cast<uint32_t>(content_->values.size());
    return content_->values.back();
  }

  /// One value with its key, or the end of an array or object.
  Status next() {
    skip_spaces();
    if (open_.empty()) return value();
    Value& parent = content_->values[open_.back()];
    const bool object = parent.kind == Kind::kObject;
    if (take(object ? '}' : ']')) {
      if (after_comma_) return problem("nothing behind a comma");
      parent.next = static_cast<uint32_t>(content_->values.size());
      open_.pop_back();
      return {};
    }
    if (parent.size > 0 && !after_comma_) {
      if (!take(',')) return problem(object ? "',' or '}' is expected" : "',' or ']' is expected");
      after_comma_ = true;
      return {};
    }
    after_comma_ = false;
    ++parent.size;
    if (object) {
      if (!take('"')) return problem("a key is expected");
      SERIN_CHECK(string());
      skip_spaces();
      if (!take(':')) return problem("':' is expected");
      skip_spaces();
    }
    return value();
  }

  Status value() {
    if (take('"')) return string();
    if (peek() == '{' || peek() == '[') {
      if (open_.size() >= JsonDocument::kNesting) return problem(fmt::format("nested more than {} deep", JsonDocument::kNesting));
      open_.push_back(static_cast<uint32_t>(content_->values.size()));
      push(peek() == '{' ? Kind::kObject : Kind::kArray, at_, 0);
      ++at_;
      return {};
    }
    constexpr std::pair<std::string_view, Kind> kWords[] = {{"null", Kind::kNull},       {"false", Kind::kFalse},
                                                            {"true", Kind::kTrue},       {"NaN", Kind::kNumber},
                                                            {"Infinity", Kind::kNumber}, {"-Infinity", Kind::kNumber}};
    for (const auto& [word, kind] : kWords) {
      if (!rest().starts_with(word)) continue;
      push(kind, at_, word.size());
      at_ += word.size();
      return {};
    }
    return number();
  }

  size_t digits() {
    const size_t before = at_;
    while (is_digit(peek())) ++at_;
    return at_ - before;
  }

  Status number() {
    const size_t begin = at_;
    take('-');
    const bool zero = peek() == '0';
    const size_t whole = digits();
    if (whole == 0) return problem("a value is expected");
    if (zero && whole > 1) return problem("a number that starts with 0");
    if (take('.') && digits() == 0) return problem("no digits behind the point");
    if (take('e') || take('E')) {
      if (!take('-')) take('+');
      if (digits() == 0) return problem("no digits in the exponent");
    }
    push(Kind::kNumber, begin, at_ - begin);
    return {};
  }

  Status string() {
    const size_t begin = at_;
    bool escaped = false;
    for (; at_ < content_->text.size(); ++at_) {
      const char c = content_->text[at_];
      if (c == '"') {
        push(Kind::kString, begin, at_ - begin).escaped = escaped;
        ++at_;
        return {};
      }
      if (static_cast<unsigned char>(c) < 0x20) return problem("a control character in a string");
      if (c != '\\') continue;
      escaped = true;
      ++at_;
      if (peek() == 'u' ? !hex4(rest().substr(1)) : peek() == '\0' || kShort.find(peek()) == std::string_view::npos)
        return problem("an unknown escape");
    }
    return problem("a string without an end");
  }

  Status check_keys(const Value& object) const {
    const auto first = static_cast<uint32_t>(&object - content_->values.data()) + 1;
    std::vector<std::string> keys;
    for (uint32_t at = first; at < object.next; at = content_->values[at + 1].next) {
      const Value& key = content_->values[at];
      const std::string_view raw = std::string_view(content_->text).substr(key.begin, key.size);
      keys.push_back(key.escaped ? unescape(raw) : std::string(raw));
    }
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice == keys.end()) return {};
    return Error{Code::kCorrupt, fmt::format("JSON, object at byte {}: key '{}' occurs twice", object.begin, utf8_prefix(*twice, 80))};
  }

  std::shared_ptr<JsonDocument::Content> content_ = std::make_shared<JsonDocument::Content>();
  size_t at_ = 0;
  bool after_comma_ = false;
  std::vector<uint32_t> open_;
};

Result<JsonDocument> JsonDocument::parse(std::string text) { return JsonParser(std::move(text)).run(); }

Json JsonDocument::root() const { return {content_.get(), 0}; }

std::optional<std::string> Json::text() const {
  if (!is_text()) return std::nullopt;
  return value().escaped ? unescape(raw()) : std::string(raw());
}

std::optional<bool> Json::boolean() const {
  if (kind() != Kind::kTrue && kind() != Kind::kFalse) return std::nullopt;
  return kind() == Kind::kTrue;
}

std::string_view Json::digits() const { return is_number() ? raw() : std::string_view(); }

std::optional<int64_t> Json::integer() const { return is_number() ? parse_number<int64_t>(raw()) : std::nullopt; }
std::optional<double> Json::number() const { return is_number() ? convert<double>(raw()) : std::nullopt; }
std::optional<float> Json::number_f32() const { return is_number() ? convert<float>(raw()) : std::nullopt; }

Json Json::operator[](std::string_view key) const {
  if (!is_object()) return {};
  for (uint32_t at = index_ + 1; at < value().next; at = content_->values[at + 1].next) {
    const Json here(content_, at);
    if (here.value().escaped ? unescape(here.raw()) == key : here.raw() == key) return {content_, at + 1};
  }
  return {};
}

}  // namespace serin::formats
