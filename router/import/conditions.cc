// conditions.cc: converts conditions to upper limits. A lower limit becomes an upper one of the negated query: r >= x where -r <= -x.

#include "router/import/conditions.h"

#include <fmt/format.h>

#include "router/import/draft.h"
#include "runtime/base/number.h"

namespace serin::imports {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

Limit at_least(const std::string& query, double min) { return {fmt::format("-({})", trim(query)), min == 0 ? 0 : -min}; }

std::optional<Limit> limit_of(std::string_view condition, bool success, const std::string& query) {
  condition = trim(condition);
  for (const std::string_view result : {"result[0]", "result"}) {
    if (!condition.starts_with(result)) continue;
    std::string_view rest = trim(condition.substr(result.size()));
    if (rest.empty() || (rest.front() != '<' && rest.front() != '>')) return std::nullopt;
    const bool below = rest.front() == '<';
    rest.remove_prefix(rest.starts_with("<=") || rest.starts_with(">=") ? 2 : 1);
    const auto limit = parse_number<double>(trim(rest));
    if (!limit) return std::nullopt;
    return below == success ? Limit{std::string(trim(query)), *limit} : at_least(query, *limit);
  }
  return std::nullopt;
}

}  // namespace serin::imports
