#include "router/control/services.h"

#include <algorithm>

#include "router/control/restore.h"
#include "router/control/wall_clock.h"
#include "runtime/base/log.h"

namespace serin::router {
namespace {

int routers_of(const RouterConfig& config) { return config.replicas ? config.replicas->max : 0; }

/// Writes what the restart decided; nothing where nothing changed.
Status save_restored(store::Store& store, const std::string& service, const Restored& restored, bool known) {
  if (known && restored.events.empty()) return {};
  store::Change change{.record = {.service = service, .stable = restored.stable, .epoch = restored.epoch, .rollout = restored.rollout}};
  const rollout::State state = restored.rollout ? restored.rollout->report.state : rollout::State{};
  for (const Restored::Event& event : restored.events) {
    log::warning("service '{}': {}: {}", service, event.event, event.detail);
    change.history.push_back({.wall_ms = wall_milliseconds(),
                              .service = service,
                              .rollout = state.id,
                              .event = event.event,
                              .actor = "restart",
                              .detail = event.detail,
                              .weight_ppm = state.weight_ppm});
  }
  return store.save(change);
}

/// Read again while it runs, and nothing about the rollout has changed.
void note_evidence_stays(const RouterConfig& config, const ServiceConfig& service, Restored& restored, const LearnedServices& learned) {
  const auto found = learned.find(service.name);
  if (found == learned.end() || !restored.rollout) return;
  if (!goes_on(found->second, service, restored.rollout->report.state, routers_of(config))) return;
  for (Restored::Event& event : restored.events)
    if (event.event == kRestarted) event = {"reloaded", "router.yaml was read again; the rollout continues with its evidence"};
}

Status end_unknown(const RouterConfig& config, store::Store& store, const std::vector<store::ServiceRecord>& records) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(config.services, name, &ServiceConfig::name) != config.services.end();
  };
  for (const store::ServiceRecord& record : records) {
    if (has(record.service)) continue;
    if (has(service_of(record.service)))
      SERIN_CHECK(save_restored(store, record.service, restore_gone(record), /*known=*/true));
    else
      log::warning("service '{}' is in the store and not in the configuration: it gets no traffic", record.service);
  }
  return {};
}

std::unique_ptr<Tracks> make_tracks(const ServiceConfig& first, const Services& services) {
  std::vector<ServiceControl*> all;
  for (const auto& service : services.all)
    if (service->config().name == first.name || service->config().track_of == first.name) all.push_back(service.get());
  return std::make_unique<Tracks>(std::move(all));
}

/// Of the service that a track belongs to, which is restored before it.
std::optional<std::string> stable_of_service(const RouterConfig& config, const ServiceConfig& track,
                                             const std::vector<Restored>& restored) {
  for (size_t i = 0; i < restored.size(); ++i)
    if (config.services[i].name == track.track_of) return restored[i].stable;
  return std::nullopt;
}

}  // namespace

Tracks* Services::tracks_of(std::string_view name) const {
  const auto found = std::ranges::find(tracks, service_of(name), [](const auto& each) { return each->all().front()->config().name; });
  return found == tracks.end() ? nullptr : found->get();
}

Result<std::unique_ptr<Services>> open_services(const RouterConfig& config, store::Store& store, const std::string& page_path,
                                                metrics::Registry& metrics, rollout::Time now, const LearnedServices& learned) {
  SERIN_TRY(const std::vector<store::ServiceRecord> records, store.load());
  SERIN_CHECK(end_unknown(config, store, records));
  auto services = std::make_unique<Services>();
  std::vector<Restored> restored;
  std::vector<store::WeightsPage::Slot> slots;
  for (const ServiceConfig& service : config.services) {
    const auto found = std::ranges::find(records, service.name, &store::ServiceRecord::service);
    const auto record = found == records.end() ? std::nullopt : std::optional(*found);
    restored.push_back(
        restore(service, record, store::WeightsPage::read(page_path, service.name), stable_of_service(config, service, restored)));
    note_evidence_stays(config, service, restored.back(), learned);
    SERIN_CHECK(save_restored(store, service.name, restored.back(), record.has_value()));
    store::WeightsPage::Slot slot{
        .service = service.name, .word = split_of(service, restored.back()).pack(), .epoch = restored.back().epoch};
    for (const VersionConfig& version : service.versions) slot.versions.push_back(version.name);
    slots.push_back(std::move(slot));
  }
  SERIN_TRY(services->page, store::WeightsPage::create(page_path, slots));
  for (size_t i = 0; i < config.services.size(); ++i)
    services->all.push_back(
        std::make_unique<ServiceControl>(config.services[i], std::move(restored[i]), *services->page, i, metrics, now, routers_of(config)));
  for (const ServiceConfig& service : config.services)
    if (service.tracks > 1 && service.track_of.empty()) services->tracks.push_back(make_tracks(service, *services));
  return services;
}

}  // namespace serin::router
