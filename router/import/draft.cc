#include "router/import/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/base/number.h"

namespace serin::imports {

using config::Node;

void Draft::lose(std::string_view what, std::string_view why) {
  std::string line = fmt::format("{}: {}", what, why);
  if (std::ranges::find(lost, line) == lost.end()) lost.push_back(std::move(line));
}

void Draft::lose_others(const Node& node, std::string_view where, std::initializer_list<std::string_view> known) {
  for (const std::string& key : node.keys())
    if (std::ranges::find(known, std::string_view(key)) == known.end())
      lose(fmt::format("{}.{}", where, key), "nothing here corresponds to it");
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::optional<Node> find_at(const Node& node, std::string_view path) {
  std::optional<Node> at = node;
  while (at && !path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    at = at->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

std::string text_at(const Node& node, std::string_view path) {
  const auto found = find_at(node, path);
  return found && found->is_scalar() ? *found->text() : "";
}

std::optional<std::string> read_duration(const Node& node) {
  if (!node.is_scalar()) return std::nullopt;
  const std::string text = *node.text();
  std::chrono::nanoseconds sum{0};
  if (const auto seconds = parse_number<double>(text)) {
    if (*seconds > 0 && *seconds < 1e9) sum = std::chrono::nanoseconds(std::llround(*seconds * 1e9));
  } else {
    for (std::string_view rest = text; !rest.empty();) {
      const size_t unit = std::min(rest.find_first_not_of("0123456789."), rest.size());
      const size_t end = std::min(rest.find_first_of("0123456789.", unit), rest.size());
      const auto part = config::parse_duration(rest.substr(0, end));
      if (!part || end == 0) return std::nullopt;
      sum += *part;
      rest.remove_prefix(end);
    }
  }
  return sum.count() > 0 ? std::optional(config::print_duration(sum)) : std::nullopt;
}

namespace {

std::string print_canary(const Draft& draft) {
  std::string text = "version: " + in_quotes(draft.canary);
  std::string values;
  for (const std::string& value : draft.cohort_values) values += (values.empty() ? "" : ", ") + in_quotes(value);
  if (!values.empty()) text += fmt::format(", cohort: {{header: {}, values: [{}]}}", in_quotes(draft.cohort_header), values);
  return text;
}

std::string print_guard(const Draft& draft) {
  std::string text;
  if (!draft.errors_max.empty()) text += fmt::format("  errors: {{max: {}}}\n", draft.errors_max);
  if (!draft.latency_p99.empty()) text += fmt::format("  latency: {{p99: {}}}\n", draft.latency_p99);
  if (!draft.shadow.empty()) text += fmt::format("  output: {{shadow: {}}}\n", draft.shadow);
  if (!draft.queries.empty()) text += "  prometheus:\n";
  for (const Query& query : draft.queries)
    text += fmt::format("    - name: {}\n      address: {}\n      query: {}\n      max: {}\n      interval: {}\n      breaches: {}\n",
                        in_quotes(query.name), in_quotes(query.address), in_quotes(query.query), query.max, query.interval, query.breaches);
  return text.empty() ? "" : "guard:\n" + text;
}

}  // namespace

std::string print_draft(const Draft& draft) {
  std::string text =
      fmt::format("# From {}. Beside what is said here Serin compares the canary with stable by itself.\nkind: Rollout\n", draft.origin);
  text += fmt::format("service: {}\n", in_quotes(draft.service));
  if (!draft.stable.empty()) text += fmt::format("stable: {{version: {}}}\n", in_quotes(draft.stable));
  text += fmt::format("canary: {{{}}}\n", print_canary(draft));
  if (draft.blue_green) text += "steps: blue-green\n";
  if (!draft.steps.empty() && !draft.blue_green) text += "steps:\n";
  for (const std::string& step : draft.steps)
    if (!draft.blue_green) text += fmt::format("  - {}\n", step);
  return text + print_guard(draft);
}

}  // namespace serin::imports
