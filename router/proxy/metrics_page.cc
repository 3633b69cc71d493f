// metrics_page.cc: `name{label="value",...} number [timestamp]`, one a line. A value may have brackets and escaped quotes.

#include "router/proxy/metrics_page.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/number.h"

namespace serin::router {
namespace {

constexpr std::string_view kSpaces = " \t\r";

/// What follows the labels; nothing: they do not end.
std::optional<std::string_view> after_labels(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && text[i] == '}')
      return text.substr(i + 1);
  }
  return std::nullopt;
}

void read_line(std::string_view line, std::span<const std::string_view> names, std::vector<std::optional<double>>& values) {
  const size_t name_ends = std::min(line.find_first_of("{ \t"), line.size());
  const auto found = std::ranges::find(names, line.substr(0, name_ends));
  if (found == names.end() || found->empty()) return;
  line.remove_prefix(name_ends);
  if (line.starts_with('{')) {
    const auto rest = after_labels(line);
    if (!rest) return;
    line = *rest;
  }
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  const auto value = parse_number<double>(line.substr(0, std::min(line.find_first_of(kSpaces), line.size())));
  if (!value || !std::isfinite(*value)) return;
  auto& sum = values[static_cast<size_t>(found - names.begin())];
  sum = sum.value_or(0) + *value;
}

}  // namespace

std::vector<std::optional<double>> read_metrics(std::string_view page, std::span<const std::string_view> names) {
  std::vector<std::optional<double>> values(names.size());
  while (!page.empty()) {
    const size_t end = std::min(page.find('\n'), page.size());
    read_line(page.substr(0, end), names, values);
    page.remove_prefix(std::min(end + 1, page.size()));
  }
  return values;
}

}  // namespace serin::router
