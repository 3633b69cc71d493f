// services.h: Every service of the configuration, continued from the state of the last run.
//
// It is the Controller without its thread and its clock, so that a simulation can start, crash and restart the same code.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/config.h"
#include "router/control/learned.h"
#include "router/control/service_control.h"
#include "router/control/tracks.h"
#include "router/store/store.h"
#include "router/store/weights_page.h"
#include "runtime/base/metrics.h"

namespace serin::router {

struct Services {
  std::optional<store::WeightsPage> page;  // the services refer to it
  std::vector<std::unique_ptr<ServiceControl>> all;
  std::vector<std::unique_ptr<Tracks>> tracks;  // of services that permit several rollouts at once

  /// Null if no service has that name.
  ServiceControl* find(std::string_view name) const {
    for (const auto& service : all)
      if (service->config().name == name) return service.get();
    return nullptr;
  }
  /// Null: the service has one track.
  Tracks* tracks_of(std::string_view name) const;
};

/// Of one router among several this is its own copy; the agreed state follows (replicas.h). Reads database and weights page, decides the
/// state (restore.h), writes it to the database, and only then starts a new page. If it is killed in between, the next start finds the old
/// page and decides the same again. `learned` is for the audit log; Controller::open() applies it.
Result<std::unique_ptr<Services>> open_services(const RouterConfig& config, store::Store& store, const std::string& page_path,
                                                metrics::Registry& metrics, rollout::Time now, const LearnedServices& learned = {});

}  // namespace serin::router
