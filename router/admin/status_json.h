// status_json.h: what the admin API says, as JSON. One line each; numbers are always finite.
#pragma once

#include <string>
#include <vector>

#include "router/config/config.h"
#include "router/control/controller.h"

namespace serin::router {

std::string status_json(const ServiceStatus& status);
std::string timeline_json(const std::string& service, const Timeline& timeline);
std::string history_json(const std::string& service, const std::vector<HistoryEntry>& entries);
/// One service with its versions: what each gets of the traffic and how many of its endpoints are healthy.
std::string service_json(const ServiceConfig& config, const ServiceStatus& status, const Controller& controller, size_t index);

}  // namespace serin::router
