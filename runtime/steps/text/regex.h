// regex.h: regular expressions of tokenizer.json, which Oniguruma's Ruby syntax defines, by PCRE2.
//
//   SERIN_TRY(const Regex regex, Regex::compile("\\s+"));
//   Regex::Search search(regex);
//   SERIN_CHECK(search.each_match(text, [](size_t begin, size_t end) { ... }));
//
// \s and \w mean what Oniguruma means, ^ and $ match at lines. A class inside a class, an intersection (&&) and (?m) mean something else in
// PCRE2 and are refused. Each match has a limit of steps, so that no expression and no text keeps a thread busy for long.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::steps::text {

/// Immutable: any thread may search.
class Regex {
 public:
  /// kCorrupt: no regular expression. kUnsupported: one that PCRE2 would read differently.
  static Result<Regex> compile(std::string_view pattern);

  class Search;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

/// Memory of searches by one thread, which outlives no Regex.
class Regex::Search {
 public:
  explicit Search(const Regex& regex);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  ~Search();

  /// Calls take(begin, end) for each match, from left to right. kTooLarge: a match takes too many steps.
  template <class F>
  Status each_match(std::string_view text, F&& take) {
    size_t begin = 0, end = 0, from = 0;
    while (from <= text.size()) {
      SERIN_TRY(const bool found, next(text, from, begin, end));
      if (!found) break;
      from = end;
      if (begin != end)
        take(begin, end);
      else
        from = behind(text, end);
    }
    return {};
  }

 private:
  Result<bool> next(std::string_view text, size_t from, size_t& begin, size_t& end);
  static size_t behind(std::string_view text, size_t at);

  const Compiled& compiled_;
  void* match_;
};

}  // namespace serin::steps::text
