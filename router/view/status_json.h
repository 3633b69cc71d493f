// status_json.h: The admin API's answers as JSON. One line each; numbers are always finite.
#pragma once

#include <string>
#include <vector>

#include "router/config/config.h"
#include "router/control/controller.h"

namespace serin::router {

std::string status_json(const ServiceStatus& status);
std::string applied_json(const Applied& applied);
/// Of those that have, or had, a rollout.
std::string rollouts_json(const std::vector<ServiceStatus>& statuses);
std::string timeline_json(const std::string& service, const Timeline& timeline);
std::string history_json(const std::string& service, const std::vector<HistoryEntry>& entries);
/// False: a further track of a service that never had a rollout (control/tracks.h).
bool is_shown(const ServiceConfig& config, const ServiceStatus& status);
/// One service with its versions: the traffic share and the number of healthy endpoints of each.
std::string service_json(const ServiceConfig& config, const ServiceStatus& status, const Controller& controller, size_t index);
/// All services; `statuses` are in the same order.
std::string services_json(const std::vector<ServiceConfig>& configs, const std::vector<ServiceStatus>& statuses,
                          const Controller& controller);

}  // namespace serin::router
