// ubjson.cc: one pass over the bytes. Each value starts with a letter for its type; lengths are values, too. Arrays and objects may state how
// many elements they have, and then have no end mark; arrays may state the type of all of them.

#include "runtime/formats/trees/ubjson.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/base/json_quote.h"

namespace serin::formats::trees {
namespace {

constexpr size_t kNesting = 100;

class Transcoder {
 public:
  explicit Transcoder(std::string_view bytes) : bytes_(bytes) {}

  Result<std::string> run() {
    if (at_ == bytes_.size()) return cut_off();
    SERIN_CHECK(value(take_letter()));
    while (!open_.empty()) SERIN_CHECK(next());
    if (at_ != bytes_.size()) return problem("more bytes behind the end");
    return std::move(out_);
  }

 private:
  struct Open {
    bool object = false;
    bool counted = false;
    uint64_t left = 0;  ///< elements, if they are counted
    char type = '\0';   ///< of all elements, if it is stated
    bool first = true;
  };

  Error problem(std::string_view what) const { return {Code::kCorrupt, fmt::format("UBJSON, byte {}: {}", at_, what)}; }
  Error cut_off() const { return problem("the file is cut off"); }
  size_t remaining() const { return bytes_.size() - at_; }
  char peek() const { return at_ < bytes_.size() ? bytes_[at_] : '\0'; }
  char take_letter() { return at_ < bytes_.size() ? bytes_[at_++] : '\0'; }

  static size_t width_of(char type) {
    switch (type) {
      case 'i':
      case 'U':
      case 'C': return 1;
      case 'I': return 2;
      case 'l':
      case 'd': return 4;
      case 'L':
      case 'D': return 8;
      default: return 0;
    }
  }

  /// `width` bytes, the highest first.
  Result<uint64_t> bits(size_t width) {
    if (remaining() < width) return cut_off();
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value = value << 8 | static_cast<uint8_t>(bytes_[at_++]);
    return value;
  }

  Result<int64_t> integer(char type) {
    const size_t width = width_of(type);
    if (width == 0 || type == 'd' || type == 'D' || type == 'C') return problem("an integer is expected");
    SERIN_TRY(const uint64_t value, bits(width));
    if (type == 'U') return static_cast<int64_t>(value);
    const auto shift = static_cast<int>(64 - 8 * width);
    return static_cast<int64_t>(value << shift) >> shift;
  }

  /// Of a text, or a count.
  Result<uint64_t> length() {
    SERIN_TRY(const int64_t value, integer(take_letter()));
    if (value < 0) return problem("a negative length");
    return static_cast<uint64_t>(value);
  }

  Status text() {
    SERIN_TRY(const uint64_t size, length());
    if (size > remaining()) return cut_off();
    append_json_quoted(out_, bytes_.substr(at_, size));
    at_ += size;
    return {};
  }

  void append_number(double value, const std::string& digits) {
    if (std::isfinite(value))
      out_ += digits;
    else
      out_ += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  }

  Status value(char type) {
    switch (type) {
      case 'Z': out_ += "null"; return {};
      case 'T': out_ += "true"; return {};
      case 'F': out_ += "false"; return {};
      case 'S': return text();
      case 'C': {
        if (remaining() < 1) return cut_off();
        append_json_quoted(out_, bytes_.substr(at_++, 1));
        return {};
      }
      case 'd': {
        SERIN_TRY(const uint64_t raw, bits(4));
        const auto number = std::bit_cast<float>(static_cast<uint32_t>(raw));
        append_number(static_cast<double>(number), fmt::format("{}", number));
        return {};
      }
      case 'D': {
        SERIN_TRY(const uint64_t raw, bits(8));
        const auto number = std::bit_cast<double>(raw);
        append_number(number, fmt::format("{}", number));
        return {};
      }
      case '[':
      case '{': return open(type == '{');
      case 'H': return Error{Code::kUnsupported, "UBJSON: a number of any precision"};
      default: break;
    }
    SERIN_TRY(const int64_t number, integer(type));
    out_ += std::to_string(number);
    return {};
  }

  Status open(bool object) {
    if (open_.size() == kNesting) return problem(fmt::format("nested more than {} deep", kNesting));
    Open opened{.object = object};
    if (peek() == '$') {
      ++at_;
      opened.type = take_letter();
      if (width_of(opened.type) == 0) return problem("elements of a type without a size");
      if (peek() != '#') return problem("a type without a count");
    }
    if (peek() == '#') {
      ++at_;
      opened.counted = true;
      SERIN_TRY(opened.left, length());
      if (opened.left > remaining() / (opened.type ? width_of(opened.type) : 1)) return cut_off();
    }
    out_ += object ? '{' : '[';
    open_.push_back(opened);
    return {};
  }

  /// The next element of what is open, or its end.
  Status next() {
    Open& parent = open_.back();
    if (!parent.counted && at_ == bytes_.size()) return cut_off();
    const char end = parent.object ? '}' : ']';
    if (parent.counted ? parent.left == 0 : peek() == end) {
      if (!parent.counted) ++at_;
      out_ += end;
      open_.pop_back();
      return {};
    }
    if (parent.counted) --parent.left;
    if (!std::exchange(parent.first, false)) out_ += ',';
    const char type = parent.type;
    if (parent.object) {
      SERIN_CHECK(text());
      out_ += ':';
    }
    if (!type && at_ == bytes_.size()) return cut_off();
    return value(type ? type : take_letter());
  }

  std::string_view bytes_;
  size_t at_ = 0;
  std::string out_;
  std::vector<Open> open_;
};

}  // namespace

Result<std::string> json_from_ubjson(std::string_view bytes) { return Transcoder(bytes).run(); }

}  // namespace serin::formats::trees
