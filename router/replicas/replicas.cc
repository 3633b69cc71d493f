// replicas.cc: one round after the other: stay a member, look, act on trips, follow, lead if nobody does, say what is followed, hand trips in. Each
// round decides anew from all that the store holds, so nothing depends on having seen every change, or on the order of two.

#include "router/replicas/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "kernels/mutex.h"
#include "router/config/config_store.h"
#include "router/replicas/peers.h"
#include "runtime/base/log.h"
#include "runtime/base/sleeper.h"

namespace serin::router {
namespace {

using Time = rollout::Time;
using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{500}, kStayEvery{1000};
constexpr int kLooksBeforeRefusal = 14;

Time now() { return Time::clock::now(); }

const store::SharedService* find(const store::Snapshot& snapshot, const std::string& service) {
  const auto found = std::ranges::find(snapshot.services, service, [](const store::SharedService& s) { return s.record.service; });
  return found == snapshot.services.end() ? nullptr : &*found;
}

/// The trip is about the rollout of this service that is under way, according to all.
bool ends(const store::Trip& trip, const store::SharedService& service) {
  if (service.record.service != trip.service || !service.record.rollout) return false;
  const rollout::State& state = service.record.rollout->report.state;
  return state.id == trip.rollout && !rollout::is_over(state.phase);
}

}  // namespace

struct Replicas::State {
  State(store::SharedStore& shared, const Services& all, std::function<void()> tell)
      : store(shared), named(all), services(all.all), changed(std::move(tell)) {}

  store::SharedStore& store;
  const Services& named;
  const std::vector<std::unique_ptr<ServiceControl>>& services;
  std::function<void()> changed;
  SharedLoad load;
  std::unique_ptr<Peers> peers;
  std::vector<std::shared_ptr<void>> gauges;

  Sleeper sleeper;
  mutable Mutex mutex;
  store::Member self SERIN_GUARDED_BY(mutex);
  bool advertised SERIN_GUARDED_BY(mutex) = false;
  std::vector<store::Trip> untold SERIN_GUARDED_BY(mutex);
  store::Snapshot seen SERIN_GUARDED_BY(mutex);
  bool reachable SERIN_GUARDED_BY(mutex) = false;
  Time seen_at SERIN_GUARDED_BY(mutex) = now();

  // Of the thread alone.
  bool joined = false;
  std::string complaint;      // said once, until another
  std::string store_trouble;  // the same of the store that cannot be reached
  Time next_stay{};
  std::thread thread;

  void run();
  void round();
  void stay_member();
  void take_up(const store::Snapshot& snapshot, const std::vector<uint64_t>& changes);
  bool follow(const store::Snapshot& snapshot, std::map<std::string, int64_t>& applied);
  void allow_rises(const store::Snapshot& snapshot, const std::vector<uint64_t>& changes);
  void hand_in_trips(const store::Snapshot& snapshot);
  void unreachable(const Error& error);
  bool act_on(const store::Trip& trip);
  void gather_trips();
};

void Replicas::State::run() {
  while (sleeper.wait(kLookEvery)) {
    gather_trips();
    round();
  }
}

void Replicas::State::gather_trips() {
  std::vector<store::Trip> trips;
  for (const auto& service : services)
    for (store::Trip& trip : service->take_trips()) trips.push_back(std::move(trip));
  if (trips.empty()) return;
  {
    const MutexLock lock(mutex);
    for (store::Trip& trip : trips) trip.member = self.id;
    untold.insert(untold.end(), trips.begin(), trips.end());
  }
  sleeper.wake();
  peers->tell(std::move(trips));
}

void Replicas::State::round() {
  std::vector<uint64_t> changes;  // before the look: what it shows is no older
  changes.reserve(services.size());
  for (const auto& service : services) changes.push_back(service->saved_change());
  stay_member();
  const auto snapshot = store.look(/*agreed=*/true);
  if (!snapshot) return unreachable(snapshot.error());
  {
    const MutexLock lock(mutex);
    if (!reachable) log::info("shared store: reached; {} routers, leader '{}'", snapshot->members.size(), snapshot->leader);
    reachable = true;
    seen = *snapshot;
    seen_at = now();
  }
  take_up(*snapshot, changes);
  hand_in_trips(*snapshot);
}

void Replicas::State::unreachable(const Error& error) {
  bool was = false;
  {
    const MutexLock lock(mutex);
    was = std::exchange(reachable, false);
  }
  if (std::exchange(store_trouble, error.message) != error.message || was)
    log::error("shared store: {}; traffic continues, weights only fall until it answers", error.message);
  for (const auto& service : services) service->let_rise(false, service->saved_change(), "the shared store cannot be reached");
}

void Replicas::State::stay_member() {
  store::Member as;
  {
    const MutexLock lock(mutex);
    if (!advertised) return;
    as = self;
  }
  if (joined && now() < next_stay) return;
  Status status = joined ? store.stay() : store.join(as);
  if (joined && !status && status.error().code == Code::kNotFound) status = store.join(as);  // too late: a new lease
  const std::string now_wrong = !status && status.error().code != Code::kUnavailable ? status.error().message : "";
  if (std::exchange(complaint, now_wrong) != now_wrong && !now_wrong.empty()) log::error("shared store: {}", now_wrong);
  joined = status.has_value() || (joined && status.error().code == Code::kUnavailable);
  if (status) next_stay = now() + kStayEvery;
}

void Replicas::State::take_up(const store::Snapshot& snapshot, const std::vector<uint64_t>& changes) {
  bool leads = snapshot.leads;
  if (!leads) {
    for (const auto& service : services) service->lead(false, now());
  }
  std::map<std::string, int64_t> applied;
  follow(snapshot, applied);
  for (const store::Trip& trip : snapshot.trips) act_on(trip);
  if (!leads && joined && snapshot.leader.empty()) {
    const auto won = store.lead();
    leads = won && *won;
    if (leads) log::info("leads the routers from now on");
  }
  if (leads) {
    for (const auto& service : services) service->lead(true, now());
    changed();
  }
  store::Member as;
  std::string leader;
  bool news = false;
  {
    const MutexLock lock(mutex);
    news = self.applied != applied;
    self.applied = std::move(applied);
    as = self;
    seen.leads = leads;
    if (leads) seen.leader = self.id;
    leader = seen.leader;
  }
  if (news && joined) joined = store.join(as).has_value();
  if (!leader.empty()) peers->set_members(as.id, snapshot.members, leader);  // without one: the last one goes on weighing what all see
  allow_rises(snapshot, changes);
}

bool Replicas::State::follow(const store::Snapshot& snapshot, std::map<std::string, int64_t>& applied) {
  bool any = false;
  for (const store::SharedService& shared : snapshot.services) {
    ServiceControl* service = named.find(shared.record.service);
    const bool tripped = std::ranges::any_of(snapshot.trips, [&](const store::Trip& trip) { return ends(trip, shared); });
    if (service == nullptr || !service->adopt(shared.record, /*agreed=*/!tripped, now())) continue;
    applied[shared.record.service] = shared.revision;
    any = true;
  }
  if (any) changed();
  return any;
}

void Replicas::State::allow_rises(const store::Snapshot& snapshot, const std::vector<uint64_t>& changes) {
  std::string own;
  {
    const MutexLock lock(mutex);
    own = self.id;
  }
  for (size_t i = 0; i < services.size(); ++i) {
    const std::string& name = services[i]->config().name;
    const store::SharedService* shared = find(snapshot, name);
    std::string waits_for = shared == nullptr ? "it is not in the shared store yet" : "";
    for (const store::Member& member : snapshot.members) {
      if (shared == nullptr || member.id == own) continue;
      const auto applied = member.applied.find(name);
      if (applied == member.applied.end() || applied->second < shared->revision) waits_for = fmt::format("router '{}'", member.id);
    }
    services[i]->let_rise(waits_for.empty() && snapshot.leads, changes[i], waits_for);
  }
}

bool Replicas::State::act_on(const store::Trip& trip) {
  ServiceControl* service = named.find(trip.service);
  if (service == nullptr || !service->trip(trip, now())) return false;
  changed();
  return true;
}

/// What this router alone knows. The leader's own are in its next save, too: whichever comes first.
void Replicas::State::hand_in_trips(const store::Snapshot& snapshot) {
  std::vector<store::Trip> trips;
  {
    const MutexLock lock(mutex);
    trips = untold;
  }
  for (const store::Trip& trip : trips) {
    const store::SharedService* shared = find(snapshot, trip.service);
    const bool needed = shared != nullptr && ends(trip, *shared) &&
                        std::ranges::none_of(snapshot.trips, [&](const store::Trip& known) { return known.rollout == trip.rollout; });
    if (needed && !store.trip(trip)) return;  // the next round tries again
    const MutexLock lock(mutex);
    std::erase_if(untold, [&](const store::Trip& told) { return told.rollout == trip.rollout; });
  }
}

Replicas::Replicas(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Replicas>> Replicas::start(const ReplicasConfig& config, store::SharedStore& store, const Services& services,
                                                  metrics::Registry& metrics, std::function<void()> changed) {
  auto state = std::make_unique<State>(store, services, std::move(changed));
  State* raw = state.get();
  SERIN_TRY(state->peers, Peers::start(config.listen,
                                       {.loads = [raw](LoadMessage told) { raw->load.note(std::move(told), now()); },
                                        .trip = [raw](const store::Trip& trip) { raw->act_on(trip); },
                                        .sightings =
                                            [raw](const Sightings& seen) {
                                              ServiceControl* service = raw->named.find(seen.service);
                                              if (service == nullptr || !service->observe_of_others(seen, now())) return;
                                              raw->gather_trips();
                                              raw->changed();
                                            },
                                        .take_sightings =
                                            [raw](const std::function<bool(const std::string&)>& wanted) {
                                              std::vector<Sightings> all;
                                              for (const auto& service : raw->services)
                                                if (wanted(service->config().name))
                                                  if (Sightings seen = service->take_sightings(); !seen.empty())
                                                    all.push_back(std::move(seen));
                                              return all;
                                            }},
                                       metrics));
  const std::string named = own_name(config);
  const store::Member self{
      .id = named.empty() ? state->peers->address() : named, .peer = state->peers->address(), .secret = state->peers->secret()};
  {
    const MutexLock lock(state->mutex);  // peers may call already
    state->self = self;
  }
  auto known = store.look(/*agreed=*/false);
  const auto others_of = [&](const store::Snapshot& snapshot) {
    return std::ranges::count_if(snapshot.members, [&](const store::Member& member) { return member.id != self.id; });
  };
  // Some that count may have ended without a word: their leases end within this time.
  for (int again = 0; again < kLooksBeforeRefusal && known && others_of(*known) >= config.max; ++again) {
    std::this_thread::sleep_for(kLookEvery);
    known = store.look(/*agreed=*/false);
  }
  if (known) {
    const auto others = others_of(*known);
    if (others >= config.max)
      return Error{Code::kFailedPrecondition, fmt::format("replicas: max: {} routers share this store already; the chance of a false "
                                                          "rollback is divided among {}",
                                                          others, config.max)};
    for (const store::SharedService& shared : known->services)
      if (ServiceControl* service = raw->named.find(shared.record.service)) service->adopt(shared.record, /*agreed=*/false, now());
    for (const store::Trip& trip : known->trips) raw->act_on(trip);
  } else {
    log::error("shared store: {}; starts with this router's last known state, and no weight rises", known.error().message);
  }
  const auto gauge = [&](const char* name, const char* help, std::function<double(const ReplicasStatus&)> read) {
    state->gauges.push_back(metrics.gauge_callback(name, help, {}, [raw, read = std::move(read)] {
      const MutexLock lock(raw->mutex);
      return read({.leads = raw->seen.leads,
                   .reachable = raw->reachable,
                   .behind_seconds = std::chrono::duration<double>(now() - raw->seen_at).count(),
                   .untold = raw->untold.size(),
                   .members = raw->seen.members});
    }));
  };
  gauge("serin_route_store_reachable", "1 where the shared store answered when it was asked last.",
        [](const auto& s) { return s.reachable; });
  gauge("serin_route_store_behind_seconds", "Since what a majority agrees on was seen.", [](const auto& s) { return s.behind_seconds; });
  gauge("serin_route_store_untold_verdicts", "Verdicts of this router that are not in the shared store yet.",
        [](const auto& s) { return static_cast<double>(s.untold); });
  gauge("serin_route_replicas", "Routers that share the store and are alive.",
        [](const auto& s) { return static_cast<double>(s.members.size()); });
  gauge("serin_route_leader", "1 where this router leads.", [](const auto& s) { return s.leads; });
  store.watch([raw] { raw->sleeper.wake(); });
  state->sleeper.wake();
  state->thread = std::thread([raw] { raw->run(); });
  return std::unique_ptr<Replicas>(new Replicas(std::move(state)));
}

Replicas::~Replicas() {
  state_->sleeper.end();
  state_->thread.join();
  state_->store.watch({});
  state_->store.leave();
}

void Replicas::advertise(std::string admin) {
  {
    const MutexLock lock(state_->mutex);
    state_->self.admin = std::move(admin);
    state_->advertised = true;
  }
  state_->sleeper.wake();
}

void Replicas::tell_verdicts() { state_->gather_trips(); }

void Replicas::share_load(LoadSource source) { state_->peers->share_load(std::move(source)); }

std::vector<VersionLoad> Replicas::with_load_of_others(const std::vector<VersionLoad>& own) const {
  std::vector<std::string> others;
  {
    const MutexLock lock(state_->mutex);
    for (const store::Member& member : state_->seen.members)
      if (member.id != state_->self.id) others.push_back(member.id);
  }
  return state_->load.with(own, others, now());
}

ReplicasStatus Replicas::status() const {
  const MutexLock lock(state_->mutex);
  ReplicasStatus status{.self = state_->self.id,
                        .leader = state_->seen.leader,
                        .leads = state_->seen.leads,
                        .reachable = state_->reachable,
                        .behind_seconds = std::chrono::duration<double>(now() - state_->seen_at).count(),
                        .untold = state_->untold.size(),
                        .members = state_->seen.members};
  for (const store::Member& member : status.members)
    if (member.id == status.leader) status.leader_admin = member.admin;
  return status;
}

}  // namespace serin::router
