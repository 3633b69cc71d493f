// controller.cc: the lock, the store, the services (services.h), and the one thread that lets time pass and writes to disk.

#include "router/control/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <ranges>
#include <thread>
#include <utility>

#include "router/config/config_kubernetes.h"
#include "router/control/service_control.h"
#include "router/control/services.h"
#include "router/store/etcd_store.h"
#include "router/store/kubernetes_store.h"
#include "router/store/lock_file.h"
#include "router/store/replicated_store.h"
#include "router/store/sqlite_store.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/sleeper.h"

namespace serin::router {
namespace {

using Time = rollout::Time;
constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::milliseconds kAgreeWithin{2000};
constexpr size_t kLongestPassword = 1024;
constexpr size_t kEarlierEntries = 1000;  // of the audit log, in which apply() looks for rollbacks

Time now() { return Time::clock::now(); }

Result<std::unique_ptr<store::SharedStore>> open_shared_store(const ReplicasConfig& config) {
  if (config.kubernetes) {
    SERIN_TRY(kubernetes::Cluster cluster, cluster_of(*config.kubernetes));
    return store::make_kubernetes_store(std::move(cluster), config.kubernetes->group);
  }
  const EtcdConfig& etcd = *config.etcd;
  store::EtcdOptions options{.endpoints = etcd.endpoints, .user = etcd.user, .password = "", .timeout = etcd.timeout, .tls = etcd.tls};
  if (!etcd.password_file.empty()) {
    auto text = read_file(etcd.password_file, kLongestPassword);
    if (!text) return text.error().in("store: etcd: password_file");
    options.password = text->substr(0, text->find_last_not_of("\r\n") + 1);
  }
  return store::make_etcd_store(std::move(options), etcd.prefix);
}

}  // namespace

struct Controller::State {
  // Order matters: the services refer to the page, the lock goes last.
  std::optional<store::LockFile> lock;
  std::unique_ptr<store::SharedStore> shared;  // where there are several routers
  std::unique_ptr<store::Store> store;
  const RouterConfig config;
  std::unique_ptr<Services> opened_services;
  std::string damage;
  std::shared_ptr<metrics::Gauge> corrupt, failing;

  std::atomic<bool> learning{true};
  Sleeper sleeper;
  Observer* observer = nullptr;
  std::thread thread;

  explicit State(const RouterConfig& given) : config(given) {}

  Status open(metrics::Registry& metrics, const LearnedServices& learned);
  const std::vector<std::unique_ptr<ServiceControl>>& services() const { return opened_services->all; }
  void run();
  void save_all();
  void changed();
  ServiceStatus status(const ServiceControl& service) const;
  Result<ServiceControl*> find(const std::string& service) const;
  template <class Command>
  Result<ServiceStatus> command(const std::string& service, const Command& command, bool may_rise = false,
                                ServiceControl* const* chosen = nullptr);
  Result<std::optional<TrackRollout>> earlier_verdict(const rollout::Spec& spec, const std::vector<ServiceControl*>& tracks);
};

Status Controller::State::open(metrics::Registry& metrics, const LearnedServices& learned) {
  corrupt = metrics.gauge("serin_route_store_corrupt", "1 if the store found at start was damaged and has been renamed.");
  failing = metrics.gauge("serin_route_store_failing", "1 while the store cannot be written; weights then only fall.");
  SERIN_TRY(lock, store::LockFile::acquire(config.store + ".lock"));
  SERIN_TRY(store::Opened opened, store::open_sqlite_store(config.store));
  store = std::move(opened.store);
  if (!opened.damage.empty()) {
    damage = fmt::format("store {} was damaged ({}) and is now {}", config.store, opened.damage, opened.set_aside);
    log::error("{}; every service starts with all traffic on its stable version", damage);
    corrupt->set(1);
  }
  SERIN_TRY(opened_services, open_services(config, *store, config.store + ".weights", metrics, now(), learned));
  if (!config.replicas) return {};
  SERIN_TRY(shared, open_shared_store(*config.replicas));
  store = store::make_replicated_store(std::move(store), *shared);
  return {};
}

ServiceStatus Controller::State::status(const ServiceControl& service) const {
  ServiceStatus status = service.status(now());
  if (observer != nullptr) status.replicas = observer->replicas();
  return status;
}

/// A service may have come to a verdict: the others first, then the disk.
void Controller::State::changed() {
  if (observer != nullptr) observer->on_change();
  sleeper.wake();
}

void Controller::State::run() {
  while (sleeper.wait(kTick)) {
    for (const auto& service : services())
      if (service->tick(now())) changed();
    for (const auto& tracks : opened_services->tracks)
      if (tracks->keep_together(now())) changed();
    save_all();
    for (const auto& service : services()) service->update_metrics();
  }
  save_all();
}

void Controller::State::save_all() {
  std::optional<Error> error;
  bool wrote_any = false;
  std::vector<std::string_view> failed;
  for (const auto& service : services()) {
    // A further track is never ahead of the service on disk (tracks.h).
    if (std::ranges::find(failed, service->config().track_of) != failed.end()) continue;
    const auto wrote = service->save(*store, now());
    if (!wrote) {  // the next tick tries again
      error = wrote.error();
      failed.push_back(service->config().name);
    }
    wrote_any = wrote_any || !wrote || *wrote;
  }
  if (error && failing->value() == 0) log::error("store {}: {}; weights only fall until it can be written", config.store, error->message);
  failing->set(error ? 1 : 0);
  if (observer != nullptr) observer->on_saved(wrote_any);
}

Result<ServiceControl*> Controller::State::find(const std::string& service) const {
  if (ServiceControl* found = opened_services->find(service)) return found;
  return Error{Code::kNotFound, fmt::format("no service '{}'", service)};
}

template <class Command>
Result<ServiceStatus> Controller::State::command(const std::string& service, const Command& command, bool may_rise,
                                                 ServiceControl* const* chosen) {
  SERIN_TRY(ServiceControl * control, find(service));
  if (may_rise && config.replicas) SERIN_CHECK(control->wait_until_agreed(kAgreeWithin));
  SERIN_TRY(const ServiceControl::Done done, command(*control));
  changed();
  if (observer != nullptr) observer->on_command();
  if (chosen != nullptr && *chosen != nullptr) control = *chosen;
  const Status saved = control->wait_until_saved(done.change);
  if (!saved && !done.applied) return saved.error();
  return status(*control);
}

Controller::Controller(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Controller>> Controller::open(const RouterConfig& config, metrics::Registry& metrics,
                                                     const LearnedServices& learned) {
  auto state = std::make_unique<State>(config);
  SERIN_CHECK(state->open(metrics, learned));
  return std::unique_ptr<Controller>(new Controller(std::move(state)));
}

void Controller::begin(LearnedServices learned, Observer* observer) {
  state_->observer = observer;
  for (const auto& service : state_->services())
    if (auto found = learned.find(service->config().name); found != learned.end()) service->remember(std::move(found->second));
  state_->thread = std::thread([raw = state_.get()] { raw->run(); });
}

Controller::~Controller() { retire(); }

void Controller::stop_learning() { state_->learning = false; }

void Controller::stop() {
  if (!state_->thread.joinable()) return;
  state_->sleeper.end();
  state_->thread.join();
}

void Controller::retire() {
  stop();
  state_->store.reset();
  state_->lock.reset();
}

const Services& Controller::services() const { return *state_->opened_services; }
store::Store& Controller::store() { return *state_->store; }
store::SharedStore* Controller::shared_store() { return state_->shared.get(); }
void Controller::changed() { state_->changed(); }
void Controller::save_soon() { state_->sleeper.wake(); }

LearnedServices Controller::take_learned() {
  LearnedServices all;
  for (const auto& service : state_->services()) all.emplace(service->config().name, service->take_learned());
  return all;
}

std::optional<ReplicasStatus> Controller::replicas() const {
  return state_->observer != nullptr ? state_->observer->replicas() : std::nullopt;
}

Split Controller::split(size_t service) const { return state_->services()[service]->split(); }

void Controller::observe(size_t service, rollout::Observation observation) {
  if (!state_->learning.load(std::memory_order_relaxed)) return;
  if (state_->services()[service]->observe(std::move(observation), now())) state_->changed();
}

void Controller::observe(size_t service, rollout::ShadowPair pair) {
  if (!state_->learning.load(std::memory_order_relaxed)) return;
  if (state_->services()[service]->observe(std::move(pair), now())) state_->changed();
}

void Controller::observe(size_t service, rollout::ResourceRound round) {
  if (!state_->learning.load(std::memory_order_relaxed)) return;
  if (state_->services()[service]->observe(std::move(round), now())) state_->changed();
}

std::shared_ptr<const rollout::Spec> Controller::spec(size_t service) const { return state_->services()[service]->spec(); }
Pace Controller::pace(size_t service) const { return state_->services()[service]->pace(); }

Result<ServiceStatus> Controller::start(rollout::Spec spec, const Request& request) {
  const std::string service = spec.service;
  if (spec.sticky.on() && spec.sticky.salt.empty()) {
    std::random_device entropy;
    spec.sticky.salt = fmt::format("{:08x}{:08x}", entropy(), entropy());
  }
  Tracks* const tracks = state_->opened_services->tracks_of(service);
  ServiceControl* chosen = nullptr;
  const auto begin = [&](ServiceControl& control) {
    if (tracks == nullptr) return control.start(std::move(spec), request, now());
    return tracks->start(std::move(spec), request, now(), chosen);
  };
  return state_->command(service, begin, /*may_rise=*/true, &chosen);
}
/// The latest rollout of this version and revision that was rolled back or undone, among those whose verdicts are kept. An error of the shared
/// store is no answer: this router's own copy may know less.
Result<std::optional<TrackRollout>> Controller::State::earlier_verdict(const rollout::Spec& spec,
                                                                       const std::vector<ServiceControl*>& tracks) {
  for (const ServiceControl* track : tracks) {
    const std::string& name = track->config().name;
    SERIN_TRY(const auto log, shared ? shared->history(name, kEarlierEntries) : store->history(name, kEarlierEntries));
    for (const HistoryEntry& entry : log | std::views::reverse) {
      if (entry.event != "rolled_back" && entry.event != "undone") continue;
      SERIN_TRY(const auto verdict, shared ? shared->verdict(entry.rollout) : store->verdict(entry.rollout));
      if (!verdict) continue;
      TrackRollout earlier = read_verdict(verdict->json);
      if (entry.event == "undone") {
        earlier.state.phase = rollout::Phase::kRolledBack;
        earlier.state.cause = "undo";
        earlier.state.reason = entry.detail;
      }
      if (was_rolled_back(spec, earlier)) return std::optional(std::move(earlier));
    }
  }
  return std::optional<TrackRollout>();
}

Result<Applied> Controller::apply(rollout::Spec spec, const Request& request, bool dry_run) {
  SERIN_TRY(ServiceControl * control, state_->find(spec.service));
  if (request.if_match) SERIN_CHECK(control->check_epoch(request.if_match));
  Tracks* const tracks = state_->opened_services->tracks_of(spec.service);
  const std::vector<ServiceControl*> controls = tracks == nullptr ? std::vector{control} : tracks->all();
  std::vector<TrackRollout> last;
  last.reserve(controls.size());
  for (const ServiceControl* each : controls) last.push_back(each->track_rollout());
  ApplyDecision decision = decide_apply(spec, last, control->standing().stable);
  const auto starts = [&] { return decision.action == ApplyAction::kStart || decision.action == ApplyAction::kReplace; };
  const size_t index = decision.of == nullptr ? 0 : static_cast<size_t>(decision.of - last.data());
  std::optional<TrackRollout> earlier;
  if (starts()) {
    SERIN_TRY(earlier, state_->earlier_verdict(spec, controls));
    if (earlier) decision = blocked_by(spec, *earlier);
  }
  Applied applied{.action = decision.action,
                  .message = decision.message,
                  .current = decision.of == nullptr ? "" : decision.of->spec,
                  .wanted = as_stored(spec, decision.of),
                  .status = state_->status(*controls[index])};
  if (!starts()) {
    applied.differs = decision.of != nullptr && applied.current != applied.wanted;
    if (decision.of != nullptr) applied.decided_by = decision.of->state;
    return applied;
  }
  if (decision.action == ApplyAction::kReplace) {
    SERIN_CHECK(controls[index]->may_replace(spec));
    if (!dry_run && controls[index]->supersede(decision.message, now(), decision.of->state.id)) state_->changed();
  }
  if (dry_run) return applied;
  Request begun = request;
  begun.if_match.reset();  // checked above; what was ended since has its own number
  SERIN_TRY(applied.status, start(std::move(spec), begun));
  if (applied.message.empty()) applied.message = fmt::format("rollout '{}' has started", applied.status.rollout->state.id);
  return applied;
}
Result<ServiceStatus> Controller::set_weight(const std::string& service, uint32_t weight_ppm, const Request& request) {
  return state_->command(
      service, [&](ServiceControl& control) { return control.set_weight(weight_ppm, request, now()); }, /*may_rise=*/true);
}
Result<ServiceStatus> Controller::pause(const std::string& service, const Request& request) {
  return state_->command(service, [&](ServiceControl& control) { return control.pause(request, now()); });
}
Result<ServiceStatus> Controller::resume(const std::string& service, const Request& request) {
  return state_->command(service, [&](ServiceControl& control) { return control.resume(request, now()); }, /*may_rise=*/true);
}
Result<ServiceStatus> Controller::promote(const std::string& service, const Request& request) {
  return state_->command(service, [&](ServiceControl& control) { return control.promote(request, now()); }, /*may_rise=*/true);
}
Result<ServiceStatus> Controller::abort(const std::string& service, const Request& request) {
  return state_->command(service, [&](ServiceControl& control) { return control.abort(request, now()); });
}

Result<ServiceStatus> Controller::undo(const std::string& service, const Request& request) {
  Tracks* const tracks = state_->opened_services->tracks_of(service);
  uint64_t of_first = 0;
  const auto undo = [&](ServiceControl& control) {
    return tracks == nullptr ? control.undo(request, now()) : tracks->undo(control, request, now(), of_first);
  };
  auto undone = state_->command(service, undo, /*may_rise=*/true);
  if (undone && of_first > 0) SERIN_CHECK(tracks->all().front()->wait_until_saved(of_first));
  return undone;
}
Result<ServiceStatus> Controller::retry(const std::string& service, const Request& request) {
  SERIN_TRY(const ServiceControl* control, state_->find(service));
  SERIN_TRY(rollout::Spec spec, control->last_spec());
  return start(std::move(spec), request);
}

Result<std::string> Controller::explain(const std::string& name) const {
  std::string id = name;
  for (const auto& service : state_->services()) {
    if (auto verdict = service->explain(name, now())) return *std::move(verdict);
    if (service->config().name == name)
      if (const auto status = service->status(now()); status.rollout) id = status.rollout->state.id;
  }
  SERIN_TRY(auto stored, state_->store->verdict(id));
  if (stored) return std::move(stored->json);
  for (const auto& service : state_->services())
    if (auto outcome = service->outcome(id)) return *std::move(outcome);  // ended while no router ran
  return Error{Code::kNotFound, fmt::format("no rollout '{}', or it ended more than {} rollouts ago", name, store::kVerdictLimit)};
}

Result<ServiceStatus> Controller::status(const std::string& service) const {
  SERIN_TRY(const ServiceControl* control, state_->find(service));
  return state_->status(*control);
}

std::vector<ServiceStatus> Controller::status() const {
  std::vector<ServiceStatus> all;
  for (const auto& service : state_->services()) all.push_back(state_->status(*service));
  return all;
}

Result<std::vector<HistoryEntry>> Controller::history(const std::string& service, size_t limit) const {
  SERIN_CHECK(state_->find(service));
  return state_->store->history(service, limit);
}

Result<Timeline> Controller::timeline(const std::string& service) const {
  SERIN_TRY(const ServiceControl* control, state_->find(service));
  return control->timeline();
}

void Controller::set_endpoint_count(size_t service, size_t version, EndpointCount count) {
  state_->services()[service]->set_endpoint_count(version, count);
}

std::optional<EndpointCount> Controller::endpoint_count(size_t service, size_t version) const {
  return state_->services()[service]->endpoint_count(version);
}

uint32_t Controller::share_of(size_t service, size_t version) const { return state_->services()[service]->share_of(version); }

const std::string& Controller::damage() const { return state_->damage; }

}  // namespace serin::router
