// outcome_reports.h: The admin API's /v1/services/{service}/outcomes.
#pragma once

#include <string>
#include <vector>

#include "router/outcomes/outcomes.h"
#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::router {

/// {metric, assigned, value} or {request_id, label}, or a list of up to a thousand of these. An error stands for one that cannot be read.
using OutcomeReports = std::vector<Result<OutcomeReport>>;
Result<OutcomeReports> read_reports(const net::Request& request);
/// All of them name requests, which only the router that answered them knows.
bool all_by_request(const OutcomeReports& reports);

/// 200 if one of them was counted, or had been before. 404 if no request is known.
net::Response take_reports(Outcomes& outcomes, const std::string& service, const OutcomeReports& reports);
net::Response show_outcomes(const Outcomes& outcomes, const std::string& service);
net::Response reset_outcomes(Outcomes& outcomes, const std::string& service, const std::string& actor);

}  // namespace serin::router
