#include "router/scaling/label_selector.h"

#include <fmt/format.h>

#include <algorithm>

namespace serin::router {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

bool is_word(std::string_view text) { return !text.empty() && text.find_first_of(" ,()=!<>") == std::string_view::npos; }

/// At commas outside brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

Error not_understood(std::string_view part) {
  return {Code::kInvalidArgument, fmt::format("labelSelector: '{}' is not KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (VALUE,...) or "
                                              "KEY notin (VALUE,...)",
                                              part)};
}

}  // namespace

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  LabelSelector selector;
  if (trimmed(text).empty()) return selector;
  for (const std::string_view part : parts_of(text)) {
    SERIN_TRY(Requirement requirement, parse_one(part));
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

Result<LabelSelector::Requirement> LabelSelector::parse_one(std::string_view text) {
  const auto made = [&](std::string_view key, std::vector<std::string> values, bool negated) -> Result<Requirement> {
    if (!is_word(key)) return not_understood(text);
    return Requirement{std::string(key), std::move(values), negated};
  };
  if (text.ends_with(')')) {
    const size_t opened = text.find('(');
    if (opened == std::string_view::npos) return not_understood(text);
    std::string_view head = trimmed(text.substr(0, opened));
    const bool negated = head.ends_with(" notin");
    if (!negated && !head.ends_with(" in")) return not_understood(text);
    head.remove_suffix(negated ? 6 : 3);
    std::vector<std::string> values;
    for (const std::string_view value : parts_of(text.substr(opened + 1, text.size() - opened - 2))) {
      if (!is_word(value)) return not_understood(text);
      values.emplace_back(value);
    }
    return made(trimmed(head), std::move(values), negated);
  }
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return text.starts_with('!') ? made(trimmed(text.substr(1)), {}, true) : made(text, {}, false);
  const bool negated = equals > 0 && text[equals - 1] == '!';
  const size_t value_at = equals + (text.substr(equals).starts_with("==") ? 2 : 1);
  const std::string_view value = trimmed(text.substr(value_at));
  if (!is_word(value)) return not_understood(text);
  return made(trimmed(text.substr(0, equals - (negated ? 1 : 0))), {std::string(value)}, negated);
}

bool LabelSelector::matches(const LabelMap& labels) const {
  return std::ranges::all_of(requirements_, [&](const Requirement& required) {
    const auto found = labels.find(required.key);
    const bool has =
        found != labels.end() && (required.values.empty() || std::ranges::find(required.values, found->second) != required.values.end());
    return has != required.negated;
  });
}

}  // namespace serin::router
