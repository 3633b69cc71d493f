#include <fmt/format.h>

#include "runtime/planner/observed.h"
#include "runtime/planner/table.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

std::string amount(double value, Observation::Unit unit) {
  if (unit == Observation::Unit::kSeconds) return fmt::format("{:.3g} ms", 1e3 * value);
  return short_bytes(static_cast<size_t>(value));
}

std::string verdict(const Observation& line) {
  if (line.planned <= 0) return "";
  if (line.at_most)
    return fmt::format("{:.0f} % of the plan{}", 100 * line.measured / line.planned, line.wrong() ? ", which is too low" : "");
  return fmt::format("{:+.0f} %", 100 * (line.measured / line.planned - 1));
}

}  // namespace

std::string observed_text(const Observed& observed) {
  std::vector<std::vector<std::string>> rows = {{"", "planned", "measured", ""}};
  for (const Observation& line : observed.lines)
    rows.push_back(
        {line.what, (line.at_most ? "at most " : "") + amount(line.planned, line.unit), amount(line.measured, line.unit), verdict(line)});
  std::string text = fmt::format("\nmeasured at {}\n{}", observed.url, table(rows, "  "));
  for (const std::string& note : observed.notes) text += fmt::format("  {}\n", note);
  return text;
}

}  // namespace serin::planner
