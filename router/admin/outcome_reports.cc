#include "router/admin/outcome_reports.h"

#include <fmt/format.h>

#include "router/admin/admin_answers.h"
#include "router/admin/admin_requests.h"
#include "runtime/base/log.h"
#include "runtime/base/schema_json.h"

namespace serin::router {
namespace {

using config::Node;

constexpr size_t kMostReports = 1000;
constexpr double kLargestValue = 1e300;

Result<OutcomeReport> read_report(const Node& node) {
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

Result<std::vector<Result<OutcomeReport>>> read_reports(const Node& body) {
  std::vector<Result<OutcomeReport>> reports;
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

}  // namespace

net::Response take_reports(Outcomes& outcomes, const std::string& service, const net::Request& request) {
  const auto body = read_body(request);
  if (!body) return error_response(body.error());
  const auto reports = read_reports(*body);
  if (!reports) return error_response(reports.error());
  const auto receipt = outcomes.add(service, *reports);
  if (!receipt) return error_response(receipt.error());
  if (receipt->accepted + receipt->duplicates > 0) return json_response(200, schema::to_json(kOutcomeReceipt, *receipt));
  const std::string& first = receipt->refused.front().error;
  return error_response(
      invalid(reports->size() == 1 ? first : fmt::format("none of {} reports can be counted; the first: {}", reports->size(), first)));
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
