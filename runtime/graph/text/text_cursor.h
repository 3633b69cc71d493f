// text_cursor.h: reads names, numbers and expressions over dimensions at a position in a text. The parser builds on it.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/base/result.h"
#include "runtime/graph/dim.h"
#include "runtime/graph/text/text.h"

namespace serin::graph {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

 protected:
  // ---- characters ----

  Error fail(std::string what) const {
    const auto line = std::ranges::count(text_.substr(0, at_), '\n') + 1;
    return {Code::kInvalidArgument, fmt::format("line {}: {}", line, what)};
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  Status expect(char c) {
    if (accept(c)) return {};
    return fail(fmt::format("expected '{}'", c));
  }
  /// Skips to the first character of the next line that contains more than a comment.
  void skip_lines() {
    size_t start = at_;
    while (at_ < text_.size()) {
      skip_space();
      if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (peek() != '\n') break;
      start = ++at_;
    }
    line_start_ = start;
  }
  Status end_of_line() {
    skip_space();
    if (at_ >= text_.size() || peek() == '\n' || peek() == '#') {
      skip_lines();
      return {};
    }
    return fail(fmt::format("unexpected '{}'", peek()));
  }
  size_t indent() const { return at_ - line_start_; }
  bool at_number() {
    skip_space();
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    return is_digit(peek()) || (peek() == '-' && (is_digit(next) || next == 'i')) || text_.substr(at_, 4) == "inf," || word_is("inf") ||
           word_is("nan");
  }
  bool word_is(std::string_view word) const {
    return text_.substr(at_, word.size()) == word && word_length(text_.substr(at_)) == word.size();
  }

  Result<std::string> name() {
    skip_space();
    if (accept('"')) {
      std::string text;
      for (; at_ < text_.size() && peek() != '"' && peek() != '\n'; ++at_) {
        if (peek() == '\\' && at_ + 1 < text_.size()) {
          ++at_;
          text += peek() == 'n' ? '\n' : peek();
        } else {
          text += peek();
        }
      }
      SERIN_CHECK(expect('"'));
      return text;
    }
    const size_t length = word_length(text_.substr(at_));
    if (length == 0) return fail("expected a name");
    at_ += length;
    return std::string(text_.substr(at_ - length, length));
  }

  /// Returns an integer if it is written as one.
  Result<std::variant<int64_t, double>> number() {
    skip_space();
    const char* first = text_.data() + at_;
    const char* last = text_.data() + text_.size();
    int64_t integer = 0;
    double real = 0;
    const auto as_integer = std::from_chars(first, last, integer);
    const auto as_real = std::from_chars(first, last, real);
    if (as_real.ec == std::errc::invalid_argument) return fail("expected a number");
    const bool whole = as_integer.ec == std::errc() && as_integer.ptr == as_real.ptr;
    at_ += static_cast<size_t>(as_real.ptr - first);
    if (whole) return std::variant<int64_t, double>(integer);
    return std::variant<int64_t, double>(real);
  }
  Result<int64_t> integer() {
    SERIN_TRY(const auto value, number());
    if (const auto* whole = std::get_if<int64_t>(&value)) return *whole;
    return fail("expected an integer");
  }
  static double as_double(const std::variant<int64_t, double>& value) {
    return std::visit([](auto x) { return static_cast<double>(x); }, value);
  }

  // ---- dimensions: the expressions that Dim::str() prints ----

  Result<Dim> dim(int depth = 0) {
    if (depth > kMaxDepth) return fail("the expression is nested too deeply");
    const bool negative = accept('-');
    SERIN_TRY(Dim sum, product(depth));
    if (negative) sum = Dim(0) - sum;
    while (true) {
      if (accept('+')) {
        SERIN_TRY(const Dim next, product(depth));
        sum = sum + next;
      } else if (accept('-')) {
        SERIN_TRY(const Dim next, product(depth));
        sum = sum - next;
      } else {
        return sum;
      }
    }
  }
  Result<Dim> product(int depth) {
    SERIN_TRY(Dim result, factor(depth));
    while (accept('*')) {
      SERIN_TRY(const Dim next, factor(depth));
      result = result * next;
    }
    return result;
  }
  Result<Dim> factor(int depth) {
    skip_space();
    if (is_digit(peek())) {
      SERIN_TRY(const int64_t value, integer());
      return Dim(value);
    }
    if (accept('(')) {
      SERIN_TRY(const Dim inner, dim(depth + 1));
      SERIN_CHECK(expect(')'));
      return inner;
    }
    if (peek() == '"') {
      SERIN_TRY(std::string symbol, name());
      return Dim::symbol(std::move(symbol));
    }
    size_t length = 0;
    const auto in_symbol = [](char c) {
      return is_digit(c) || std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '?' || c == '/' || c == ':';
    };
    while (at_ + length < text_.size() && in_symbol(text_[at_ + length])) ++length;
    if (length == 0) return fail("expected a dimension");
    const std::string symbol(text_.substr(at_, length));
    at_ += length;
    if ((symbol != "floor" && symbol != "max") || !accept('(')) return Dim::symbol(symbol);
    SERIN_TRY(const Dim a, dim(depth + 1));
    SERIN_CHECK(expect(symbol == "max" ? ',' : '/'));
    SERIN_TRY(const Dim b, dim(depth + 1));
    SERIN_CHECK(expect(')'));
    return symbol == "max" ? max(a, b) : floor_div(a, b);
  }

  static constexpr int kMaxDepth = 64;  ///< for expressions and bodies

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
};

}  // namespace serin::graph
