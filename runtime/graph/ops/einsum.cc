// einsum.cc: see einsum.h.

#include "runtime/graph/ops/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace serin::graph {
namespace {

constexpr std::string_view kEllipsis = "...";

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

template <class... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t end = 0; end != std::string_view::npos; text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1)) {
    end = text.find(separator);
    parts.push_back(text.substr(0, end));
  }
  return parts;
}

/// How many axes "..." stands for in a term of an operand of `rank` axes.
Result<size_t> ellipsis_rank(std::string_view term, size_t rank) {
  const size_t at = term.find(kEllipsis);
  const size_t named = term.size() - (at == std::string_view::npos ? 0 : kEllipsis.size());
  for (size_t i = 0; i < term.size(); ++i) {
    if (at != std::string_view::npos && i >= at && i < at + kEllipsis.size()) continue;
    if (!is_letter(term[i])) return invalid("term '{}' has '{}', letters and one '...' are allowed", term, term[i]);
  }
  if (at == std::string_view::npos && named != rank) return invalid("term '{}' names {} axes, its operand has {}", term, named, rank);
  if (named > rank) return invalid("term '{}' names {} axes, its operand has {}", term, named, rank);
  if (rank - named > 10) return invalid("'...' stands for {} axes, at most 10 are supported", rank - named);
  return rank - named;
}

/// `term` with the last `count` of `all` labels '0', '1', ... for its "...".
std::string expanded(std::string_view term, size_t count, size_t all) {
  const size_t at = term.find(kEllipsis);
  if (at == std::string_view::npos) return std::string(term);
  std::string labels(term.substr(0, at));
  for (size_t i = all - count; i < all; ++i) labels += static_cast<char>('0' + i);
  return labels.append(term.substr(at + kEllipsis.size()));
}

/// The result of an equation without "->": "..." first, then the labels that occur once, in alphabetical order.
std::string implicit_result(const std::vector<std::string>& operands, size_t ellipsis) {
  std::array<int, 128> uses{};
  for (const std::string& labels : operands) {
    for (const char label : labels) ++uses[static_cast<size_t>(label)];
  }
  std::string result;
  for (size_t i = 0; i < ellipsis; ++i) result += static_cast<char>('0' + i);
  for (char label = 'A'; label <= 'z'; ++label) {
    if (uses[static_cast<size_t>(label)] == 1) result += label;
  }
  return result;
}

}  // namespace

Result<Einsum> parse_einsum(std::string_view equation, std::span<const size_t> ranks) {
  std::string text(equation);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t'; });
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  const auto terms = split(left, ',');
  if (terms.size() != ranks.size()) return invalid("the equation has {} terms, the node has {} operands", terms.size(), ranks.size());

  std::vector<size_t> counts;
  for (size_t i = 0; i < terms.size(); ++i) {
    SERIN_TRY(const size_t count, ellipsis_rank(terms[i], ranks[i]));
    counts.push_back(count);
  }
  const size_t all = counts.empty() ? 0 : *std::ranges::max_element(counts);
  Einsum einsum;
  for (size_t i = 0; i < terms.size(); ++i) einsum.operands.push_back(expanded(terms[i], counts[i], all));
  if (arrow == std::string::npos) {
    einsum.result = implicit_result(einsum.operands, all);
    return einsum;
  }
  const std::string right = text.substr(arrow + 2);
  const bool has_ellipsis = right.find(kEllipsis) != std::string::npos;
  SERIN_CHECK(ellipsis_rank(right, right.size() - (has_ellipsis ? kEllipsis.size() : 0) + (has_ellipsis ? all : 0)));
  einsum.result = expanded(right, all, all);
  for (const char label : einsum.result) {
    if (std::ranges::count(einsum.result, label) > 1) return invalid("the result names '{}' twice", label);
    if (std::ranges::none_of(einsum.operands, [&](const std::string& labels) { return labels.find(label) != std::string::npos; }))
      return invalid("the result names '{}', no operand does", label);
  }
  return einsum;
}

}  // namespace serin::graph
