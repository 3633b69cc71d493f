// print_template.cc: the template of a model, as text and as data.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>

#include "runtime/planner/report.h"
#include "runtime/planner/report_parts.h"
#include "runtime/planner/table.h"

namespace serin::planner {

namespace json = boost::json;

std::string template_text(const TemplateReport& report, bool values) {
  std::string text = fmt::format("\ntemplate {}\n", fmt::join(report.files, " <- "));
  if (!report.why.empty()) text += fmt::format("  the most specific one for the model: {}\n", report.why);
  for (const auto& [file, why] : report.why_not) text += fmt::format("  not {}: it {}\n", file, why);
  if (!values) return text;
  std::vector<std::vector<std::string>> rows = {{"key", "value", "from"}};
  for (const ExplainedValue& each : report.values) rows.push_back({each.key, each.value, each.where});
  return text + table(rows, "  ", 3);
}

json::object template_json(const TemplateReport& report) {
  json::array values, others;
  for (const ExplainedValue& each : report.values) values.push_back({{"key", each.key}, {"value", each.value}, {"from", each.where}});
  for (const auto& [file, why] : report.why_not) others.push_back({{"file", file}, {"why_not", why}});
  return {{"files", json::array(report.files.begin(), report.files.end())},
          {"why", report.why},
          {"others", std::move(others)},
          {"values", std::move(values)}};
}

}  // namespace serin::planner
