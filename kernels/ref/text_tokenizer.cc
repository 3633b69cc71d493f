// text_tokenizer.cc: Tokenizer of ONNX Runtime, which converters of scikit-learn's vectorizers write: strings -> their tokens, filled up to the same length.
//
// Three ways to cut: what lies between the matches of the separators, which are applied one after the other; the matches of an expression; characters,
// where the only separator is empty or the expression is ".". RE2 finds the leftmost-longest match in time linear in the text.

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/ref/text_families.h"
#include "kernels/utf8.h"

namespace serin::kernels::ref {

namespace {

using Tokens = std::vector<std::string_view>;

struct Cutter {
  std::vector<std::unique_ptr<RE2>> separators;
  std::unique_ptr<RE2> token;  ///< both absent: characters
  size_t shortest = 1;         ///< characters of a token
};

/// Bytes that are no character count as one each.
size_t step(std::string_view text, size_t at) { return at < text.size() ? std::max<size_t>(utf8_sequence(text.substr(at)), 1) : 1; }

bool long_enough(std::string_view token, size_t shortest) {
  size_t characters = 0;
  for (size_t at = 0; at < token.size() && characters < shortest; at += step(token, at)) ++characters;
  return characters >= shortest;
}

/// The next match in text[from, end): its place and size.
bool find(const RE2& regex, std::string_view text, size_t from, size_t& at, size_t& size) {
  re2::StringPiece match;
  if (from > text.size() || !regex.Match({text.data(), text.size()}, from, text.size(), RE2::UNANCHORED, &match, 1)) return false;
  at = static_cast<size_t>(match.data() - text.data());
  size = match.size();
  return true;
}

Tokens characters_of(std::string_view text) {
  Tokens tokens;
  for (size_t at = 0; at < text.size(); at += tokens.back().size()) tokens.push_back(text.substr(at, step(text, at)));
  return tokens;
}

Tokens matches_of(const Cutter& cutter, std::string_view text) {
  Tokens tokens;
  size_t at = 0, size = 0;
  for (size_t from = 0; find(*cutter.token, text, from, at, size);) {
    const bool keep = size > 0 && long_enough(text.substr(at, size), cutter.shortest);
    if (keep) tokens.push_back(text.substr(at, size));
    from = at + (keep ? size : step(text, at));
  }
  return tokens;
}

void split_at(const RE2& separator, std::string_view text, size_t shortest, Tokens& tokens) {
  const auto keep = [&](std::string_view token) {
    if (long_enough(token, shortest)) tokens.push_back(token);
  };
  size_t from = 0, at = 0, size = 0;
  while (find(separator, text, from, at, size)) {
    keep(text.substr(from, at - from));
    from = at + (size > 0 ? size : step(text, at));
  }
  if (from < text.size()) keep(text.substr(from));
}

Tokens cut(const Cutter& cutter, std::string_view text) {
  if (cutter.token) return matches_of(cutter, text);
  if (cutter.separators.empty()) return characters_of(text);
  Tokens tokens{text};
  for (const auto& separator : cutter.separators) {
    Tokens finer;
    for (const std::string_view part : tokens) split_at(*separator, part, cutter.shortest, finer);
    tokens = std::move(finer);
  }
  return tokens;
}

std::unique_ptr<RE2> compiled(const std::string& pattern, std::string& why) {
  RE2::Options options(RE2::Quiet);
  options.set_longest_match(true);
  auto regex = std::make_unique<RE2>(pattern, options);
  if (regex->ok()) return regex;
  why = "'" + pattern + "' is not a regular expression of RE2: " + regex->error();
  return nullptr;
}

bool fill(const Attributes& attributes, Cutter& cutter, std::string& why) {
  const std::vector<std::string> separators = attributes.texts("separators");
  const std::string token = attributes.text("tokenexp", "");
  const int64_t shortest = attributes.integer("mincharnum", 1);
  if (separators.empty() == token.empty()) return why = "needs separators or tokenexp, one of them", false;
  if (shortest < 1) return why = "mincharnum is " + std::to_string(shortest) + ", it must be at least 1", false;
  cutter.shortest = static_cast<size_t>(shortest);
  if (token == "." || (separators.size() == 1 && separators.front().empty()))
    return shortest == 1 || (why = "mincharnum is " + std::to_string(shortest) + ", but characters are cut one by one", false);
  if (!token.empty()) return (cutter.token = compiled(token, why)) != nullptr;
  for (const std::string& separator : separators) {
    cutter.separators.push_back(compiled(separator, why));
    if (!cutter.separators.back()) return false;
  }
  return true;
}

}  // namespace

/// x [c] or [n, c] -> tokens [..., most], between marks where asked for, filled up outside of them. The output is described with a bound on `most`.
Prepared tokenizer(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].dtype != DType::kString) return refuse(why, "the operand must be strings");
  auto cutter = std::make_shared<Cutter>();
  if (!fill(desc.attributes, *cutter, why)) return nullptr;
  const bool mark = desc.attributes.integer("mark", 0) != 0;
  const std::string padding = desc.attributes.text("pad_value", "");
  return make_kernel([=, cutter = std::shared_ptr<const Cutter>(std::move(cutter))](Stream&, Inputs in, Outputs out) -> Fault {
    std::vector<Tokens> rows;
    size_t most = 0;
    for (const std::string& text : strings_of(in[0])) {
      rows.push_back(cut(*cutter, text));
      if (mark) rows.back().insert(rows.back().begin(), "\x02"), rows.back().push_back("\x03");
      most = std::max(most, rows.back().size());
    }
    Shape shape = in[0].shape;
    shape.push_back(static_cast<int64_t>(most));
    if (shape.elements() > out[0].elements()) return "the output is too small for " + std::to_string(most) + " tokens";
    out[0].shape = shape;
    auto* y = out[0].as<std::string>();
    for (const Tokens& row : rows) {
      for (size_t k = 0; k < most; ++k) *y++ = k < row.size() ? std::string(row[k]) : padding;
    }
    return kOk;
  });
}

}  // namespace serin::kernels::ref
