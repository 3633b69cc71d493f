// status_json.h: The admin API's answers as JSON. One line each; numbers are always finite.
#pragma once

#include <string>
#include <vector>

#include "router/config/config.h"
#include "router/control/controller.h"

namespace serin::router {

std::string status_json(const ServiceStatus& status);
std::string timeline_json(const std::string& service, const Timeline& timeline);
std::string history_json(const std::string& service, const std::vector<HistoryEntry>& entries);
/// One service with its versions: the traffic share and the number of healthy endpoints of each.
std::string service_json(const ServiceConfig& config, const ServiceStatus& status, const Controller& controller, size_t index);

}  // namespace serin::router
