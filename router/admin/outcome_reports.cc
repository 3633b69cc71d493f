#include "router/admin/outcome_reports.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/admin/admin_answers.h"
#include "router/admin/admin_requests.h"
#include "router/config/config_outcomes.h"
#include "runtime/base/log.h"
#include "runtime/base/schema_json.h"

namespace serin::router {
namespace {

using config::Node;

constexpr size_t kMostReports = 1000;
constexpr double kLargestValue = 1e300;

/// 3, true or "cat"
Result<Label::value_type> read_class(const Node& node) {
  SERIN_TRY(std::string text, node.text());
  if (!node.is_quoted()) {
    if (text == "true" || text == "false") return text == "true" ? 1. : 0.;
    if (const auto number = node.number(-kLargestValue, kLargestValue)) return *number;
  }
  if (text.empty() || text.size() > kLongestClass)
    return node.error(fmt::format("must be a number, or a text of 1 to {} bytes", kLongestClass));
  return text;
}

Result<OutcomeReport> read_labelled(const Node& node) {
  SERIN_CHECK(node.allow_only({"metric", "request_id", "label"}));
  OutcomeReport report;
  SERIN_TRY(report.metric, node.text("metric", ""));
  SERIN_TRY(const Node id, node.at("request_id"));
  SERIN_TRY(report.request_id, id.text());
  if (report.request_id.empty()) return id.error("must not be empty");
  SERIN_TRY(const Node label, node.at("label"));
  const auto rows = label.is_list() ? label.items() : std::vector<Node>{label};
  if (rows.empty()) return label.error("must be a class, or a list with the class of each row");
  for (const Node& row : rows) {
    SERIN_TRY(report.label.emplace_back(), read_class(row));
  }
  return report;
}

Result<OutcomeReport> read_report(const Node& node) {
  if (node.is_map() && (node.has("request_id") || node.has("label"))) return read_labelled(node);
  SERIN_CHECK(node.allow_only({"metric", "assigned", "value"}));
  OutcomeReport report;
  SERIN_TRY(const Node metric, node.at("metric"));
  SERIN_TRY(report.metric, metric.text());
  SERIN_TRY(const Node assigned, node.at("assigned"));
  SERIN_TRY(report.assigned, assigned.text());
  SERIN_TRY(const Node value, node.at("value"));
  SERIN_TRY(report.value, value.number(-kLargestValue, kLargestValue));
  return report;
}

}  // namespace

Result<OutcomeReports> read_reports(const net::Request& request) {
  SERIN_TRY(const Node body, read_body(request));
  OutcomeReports reports;
  if (!body.is_list()) {
    reports.push_back(read_report(body));
    return reports;
  }
  const auto items = body.items();
  if (items.empty() || items.size() > kMostReports)
    return body.error(fmt::format("must be a report, or a list of 1 to {} reports", kMostReports));
  for (const Node& item : items) reports.push_back(read_report(item));
  return reports;
}

bool all_by_request(const OutcomeReports& reports) {
  return std::ranges::all_of(reports, [](const auto& report) { return report && report->by_request(); });
}

net::Response take_reports(Outcomes& outcomes, const std::string& service, const OutcomeReports& reports) {
  const auto receipt = outcomes.add(service, reports);
  if (!receipt) return error_response(receipt.error());
  if (receipt->accepted + receipt->duplicates > 0) return json_response(200, schema::to_json(kOutcomeReceipt, *receipt));
  const std::string& first = receipt->refused.front().error;
  const bool unknown =
      std::ranges::all_of(receipt->refused, [](const RefusedOutcome& refused) { return refused.code == code_name(Code::kNotFound); });
  return error_response(
      {unknown ? Code::kNotFound : Code::kInvalidArgument,
       reports.size() == 1 ? first : fmt::format("none of {} reports can be counted; the first: {}", reports.size(), first)});
}

net::Response show_outcomes(const Outcomes& outcomes, const std::string& service) {
  const auto summary = outcomes.summary(service);
  return summary ? json_response(200, schema::to_json(kOutcomesSummary, *summary)) : error_response(summary.error());
}

net::Response reset_outcomes(Outcomes& outcomes, const std::string& service, const std::string& actor) {
  if (const Status done = outcomes.reset(service); !done) return error_response(done.error());
  log::info("service '{}': outcomes are counted anew, as {} asked", service, actor);
  return show_outcomes(outcomes, service);
}

}  // namespace serin::router
