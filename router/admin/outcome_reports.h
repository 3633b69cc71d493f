// outcome_reports.h: The admin API's /v1/services/{service}/outcomes.
#pragma once

#include <string>

#include "router/outcomes/outcomes.h"
#include "runtime/net/http.h"

namespace serin::router {

/// A report {metric, assigned, value}, or a list of up to a thousand. 200 if one of them was counted, or had been before.
net::Response take_reports(Outcomes& outcomes, const std::string& service, const net::Request& request);
net::Response show_outcomes(const Outcomes& outcomes, const std::string& service);
net::Response reset_outcomes(Outcomes& outcomes, const std::string& service, const std::string& actor);

}  // namespace serin::router
