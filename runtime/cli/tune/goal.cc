#include "runtime/cli/tune/goal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace serin::cli {
namespace {

constexpr double kMostMilliseconds = 3'600'000;

Error wrong(const std::string& condition, std::string_view why) { return invalid(fmt::format("--goal: '{}': {}", condition, why)); }

/// The condition without its unit of time, and how many milliseconds that unit has.
std::pair<std::string, double> split_unit(const std::string& condition) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"us", 1e-3}, {"ms", 1}, {"s", 1e3}};
  for (const auto& [unit, milliseconds] : kUnits)
    if (condition.ends_with(unit))
      return {std::string(trimmed(std::string_view(condition).substr(0, condition.size() - unit.size()))), milliseconds};
  return {condition, 1};
}

}  // namespace

Result<Goal> parse_goal(const std::string& text) {
  Goal goal;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string condition(trimmed(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
    if (condition.empty()) return invalid(fmt::format("--goal '{}': a condition is empty", text));
    const std::string_view name = trimmed(std::string_view(condition).substr(0, condition.find_first_of("<>")));
    const bool is_latency = std::ranges::find(kPercentiles, name) != kPercentiles.end();
    const auto [bare, milliseconds] = is_latency ? split_unit(condition) : std::pair(condition, 1.0);
    auto parsed = parse_requirement(bare);
    if (!parsed)
      return wrong(condition,
                   is_latency ? "must be like p99 <= 50 ms" : "must be like top1 >= 95 %, with >=, >, <= or <, or like p99 <= 50 ms");
    if (std::isnan(parsed->bound)) return wrong(condition, "is no number");
    parsed->text = condition;
    if (!is_latency) {
      if (parsed->metric == "accuracy") parsed->metric = "top1";
      goal.quality.push_back(*std::move(parsed));
      continue;
    }
    parsed->bound *= milliseconds;
    using enum Requirement::Relation;
    if (parsed->relation != kAtMost && parsed->relation != kBelow) return wrong(condition, "a latency has an upper bound: <= or <");
    if (bare.ends_with('%') || parsed->bound <= 0 || parsed->bound > kMostMilliseconds)
      return wrong(condition, "must be a time of more than 0 and at most an hour, in us, ms or s");
    goal.latency.push_back(*std::move(parsed));
  }
  return goal;
}

}  // namespace serin::cli
