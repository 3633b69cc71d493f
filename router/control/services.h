// services.h: every service of the configuration, going on where the last run left it. What Controller owns, without its thread and its clock, so
// that a simulation can start, crash and restart the same code.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/config.h"
#include "router/control/learned.h"
#include "router/control/service_control.h"
#include "router/store/store.h"
#include "router/store/weights_page.h"
#include "runtime/base/metrics.h"

namespace serin::router {

struct Services {
  std::optional<store::WeightsPage> page;  // the services refer to it
  std::vector<std::unique_ptr<ServiceControl>> all;

  /// Null where there is none of that name.
  ServiceControl* find(std::string_view name) const {
    for (const auto& service : all)
      if (service->config().name == name) return service.get();
    return nullptr;
  }
};

/// Of a router among several this is its own copy; what is agreed on follows (replicas.h).
/// Reads database and page of weights, decides what goes on (restore.h), writes that to the database, and only then begins a new page: killed in
/// between, the next start finds the old page and decides the same again. `learned` is for the audit log: who takes it up is Controller::open().
Result<std::unique_ptr<Services>> open_services(const RouterConfig& config, store::Store& store, const std::string& page_path,
                                                metrics::Registry& metrics, rollout::Time now, const LearnedServices& learned = {});

}  // namespace serin::router
