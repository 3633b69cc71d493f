#include <fmt/format.h>

#include "runtime/planner/observed.h"
#include "runtime/planner/table.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

std::string amount(double value, Observation::Unit unit) {
  switch (unit) {
    case Observation::Unit::kSeconds: return fmt::format("{:.3g} ms", 1e3 * value);
    case Observation::Unit::kShare: return fmt::format("{:.3g} %", 100 * value);
    case Observation::Unit::kPerSecond: return fmt::format("{:.4g} /s", value);
    case Observation::Unit::kRows: return fmt::format("{:.3g}", value);
    case Observation::Unit::kBytes: break;
  }
  return short_bytes(static_cast<size_t>(value));
}

std::string planned_amount(const Observation& line) {
  return line.planned ? (line.at_most ? "at most " : "") + amount(*line.planned, line.unit) : "";
}

std::string verdict(const Observation& line) {
  if (!line.planned || *line.planned <= 0) return "";
  if (line.unit == Observation::Unit::kShare) return fmt::format("{:+.2g} percentage points", 100 * (line.measured - *line.planned));
  if (line.at_most)
    return fmt::format("{:.0f} % of the plan{}", 100 * line.measured / *line.planned, line.wrong() ? ", which is too low" : "");
  return fmt::format("{:+.0f} %", 100 * (line.measured / *line.planned - 1));
}

}  // namespace

std::string observed_text(const Observed& observed) {
  std::vector<std::vector<std::string>> rows = {{"", "planned", "measured", ""}};
  for (const Observation& line : observed.lines)
    rows.push_back({line.what, planned_amount(line), amount(line.measured, line.unit), verdict(line)});
  const std::string window = observed.window.empty() ? "" : fmt::format(", in the last {}", observed.window);
  std::string text = fmt::format("\nmeasured at {}{}\n{}", observed.url, window, table(rows, "  "));
  for (const std::string& note : observed.notes) text += fmt::format("  {}\n", note);
  return text;
}

}  // namespace serin::planner
