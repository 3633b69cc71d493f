#include "runtime/cli/offline/eval_gate.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "runtime/base/number.h"

namespace serin::cli {

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

namespace {

/// A number, perhaps with a unit that makes it a hundredth.
std::optional<double> number_with(std::string_view text, std::initializer_list<std::string_view> units) {
  for (const std::string_view unit : units) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_number<double>(trimmed(text.substr(0, text.size() - unit.size())));
    return number ? std::optional(*number / 100) : std::nullopt;
  }
  return parse_number<double>(text);
}

}  // namespace

bool Requirement::holds(double value) const {
  switch (relation) {
    case Relation::kAtLeast: return value >= bound;
    case Relation::kAbove: return value > bound;
    case Relation::kAtMost: return value <= bound;
    case Relation::kBelow: return value < bound;
  }
  return false;
}

Result<Requirement> parse_requirement(const std::string& text) {
  using enum Requirement::Relation;
  constexpr std::pair<std::string_view, Requirement::Relation> kRelations[] = {
      {">=", kAtLeast}, {"<=", kAtMost}, {">", kAbove}, {"<", kBelow}};
  for (const auto& [sign, relation] : kRelations) {
    const size_t at = text.find(sign);
    if (at == std::string::npos) continue;
    const std::string_view metric = trimmed(std::string_view(text).substr(0, at));
    const auto bound = number_with(trimmed(std::string_view(text).substr(at + sign.size())), {"%"});
    if (metric.empty() || !bound) break;
    return Requirement{text, std::string(metric), relation, *bound};
  }
  return invalid(fmt::format("--require {}: must be METRIC >= NUMBER, or with >, <=, <", text));
}

Result<double> parse_margin(const std::string& text) {
  const auto margin = number_with(trimmed(text), {"pt", "%"});
  if (!margin || *margin < 0)
    return invalid(fmt::format("--no-worse-by {}: must be like 0.5pt (percentage points) or 0.005, and not negative", text));
  return *margin;
}

}  // namespace serin::cli
