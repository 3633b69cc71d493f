// rollout_objects.cc: one round after the other. Each decides anew from the objects and from the rollouts as they are, so nothing depends on
// having seen each change, and a router that begins to lead needs nothing from the one before.

#include "router/objects/rollout_objects.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "router/config/read_rollout.h"
#include "router/control/apply.h"
#include "router/control/wall_clock.h"
#include "router/objects/object_status.h"
#include "runtime/base/log.h"
#include "runtime/base/sleeper.h"

namespace serin::router {
namespace {

namespace json = boost::json;
using kubernetes::find_at;
using kubernetes::text_at;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kRound{1}, kReadAgain{30}, kWriteEvidence{5}, kDecideAgain{5};
constexpr const char* kGroup = "serin.dev/routers";
constexpr std::string_view kActor = "kubernetes:";
constexpr const char* kRevision = "serin.dev/revision";
constexpr size_t kStartsWithin = 1000;  // entries of the audit log in which the start of a running rollout is looked for

std::string rfc3339(int64_t wall_ms) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(wall_ms / 1000))); }

const json::object& object_at(const json::object& object, std::string_view key) {
  static const json::object none;
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? value->as_object() : none;
}

bool is_running(const ServiceStatus& status) { return status.rollout && !rollout::is_over(status.rollout->state.phase); }

}  // namespace

struct RolloutObjects::State {
  State(const kubernetes::Cluster& cluster, std::string of_routers, const RouterConfig& of_router, Controller& of_rollouts)
      : group(std::move(of_routers)),
        config(of_router),
        controller(of_rollouts),
        name_space(cluster.name_space),
        path(fmt::format("/apis/serin.dev/v1/namespaces/{}/rollouts", name_space)),
        api(cluster),
        watch(cluster, path, [this] { read_again(); }),
        thread([this] { run(); }) {}
  ~State() { end(); }
  void end() {
    ending = true;
    sleeper.end();
    api.stop();
    if (thread.joinable()) thread.join();
  }

  void run();
  void read_again() {
    stale = true;
    sleeper.wake();
  }
  void round();
  Status read();
  ObjectOutcome outcome_of(const json::object& object, const std::vector<ServiceStatus>& now);
  std::optional<ServiceStatus> started_before(const ObjectOutcome& outcome, const json::object& status,
                                              const std::vector<ServiceStatus>& now);
  ServiceStatus ended_before(const std::string& id, const json::object& status, const ObjectOutcome& outcome) const;
  void start(rollout::Spec spec, const std::string& name, ObjectOutcome& outcome);
  void write(const json::object& object, const ObjectOutcome& outcome);
  void end_those_without_object(const std::vector<ServiceStatus>& now);
  std::string owner_of(const ServiceStatus& status);

  const std::string group;
  const RouterConfig& config;
  Controller& controller;
  const std::string name_space, path;
  kubernetes::ApiClient api;
  std::atomic<bool> stale{true}, ending{false};
  Sleeper sleeper;

  // Of the thread alone.
  std::vector<json::object> objects;
  std::set<std::string> names;
  bool led = false;
  Clock::time_point read_next{};
  std::string status_trouble;
  std::string trouble;                        // said once, until another
  std::map<std::string, std::string> owners;  // by the id of a running rollout: "kubernetes:models/digits", or who else started it
  std::map<std::string, Clock::time_point> written_at;  // by name
  /// The last decision that started nothing. It holds until the object changes, for a while.
  struct Decision {
    std::string version;  // generation, revision and service of the object
    ObjectOutcome outcome;
    Clock::time_point until;
  };
  std::map<std::string, Decision> decisions;  // by name
  struct Wish {
    std::string service, canary;
  };
  std::map<std::string, Wish> wishes;  // by name, of valid objects

  kubernetes::ApiWatch watch;
  std::thread thread;
};

void RolloutObjects::State::run() {
  while (sleeper.wait(kRound)) round();
}

void RolloutObjects::State::round() {
  const auto replicas = controller.replicas();
  const bool leads = !replicas || (replicas->leads && replicas->reachable);
  if (!std::exchange(led, leads)) stale = true;
  if (!leads) return;
  const auto now = Clock::now();
  if (stale.exchange(false) || now >= read_next) {
    const Status done = read();
    const std::string wrong = done ? "" : done.error().message;
    if (std::exchange(trouble, wrong) != wrong && !wrong.empty()) log::error("objects of the kind Rollout: {}", wrong);
    if (!done) {
      stale = true;
      return;
    }
    read_next = now + kReadAgain;
  }
  const std::vector<ServiceStatus> at = controller.status();
  for (const json::object& object : objects) {
    if (ending) return;
    write(object, outcome_of(object, at));
  }
  end_those_without_object(controller.status());
}

Status RolloutObjects::State::read() {
  SERIN_TRY(const json::object list, api.list(path));
  objects.clear();
  names.clear();
  for (const json::value& item : list.at("items").as_array()) {
    if (!item.is_object()) continue;
    const std::string of = text_at(item.as_object(), {"metadata", "labels", kGroup});
    if (!of.empty() && of != group) continue;  // of other routers in this namespace
    names.insert(text_at(item.as_object(), {"metadata", "name"}));
    if (find_at(item.as_object(), {"metadata", "deletionTimestamp"}) == nullptr) objects.push_back(item.as_object());
  }
  const auto gone = [&](const auto& known) { return !names.contains(known.first); };
  std::erase_if(written_at, gone);
  std::erase_if(decisions, gone);
  std::erase_if(wishes, gone);
  return {};
}

/// What this object has started already, as its status says: for this canary and revision it starts nothing again.
std::optional<ServiceStatus> RolloutObjects::State::started_before(const ObjectOutcome& outcome, const json::object& status,
                                                                   const std::vector<ServiceStatus>& now) {
  const std::string id = text_at(status, {"id"});
  if (id.empty() || text_at(status, {"canary"}) != outcome.canary || text_at(status, {"revision"}) != outcome.revision) return std::nullopt;
  if (const std::string service = text_at(status, {"service"}); !service.empty() && service != outcome.service) return std::nullopt;
  const auto runs = std::ranges::find_if(now, [&](const ServiceStatus& one) { return one.rollout && one.rollout->state.id == id; });
  if (runs != now.end()) return *runs;
  return ended_before(id, status, outcome);
}

/// A rollout that is no track's last one any more: as its verdict says.
ServiceStatus RolloutObjects::State::ended_before(const std::string& id, const json::object& status, const ObjectOutcome& outcome) const {
  ServiceStatus gone{.stable = text_at(status, {"stable"}), .rollout = rollout::Report{}};
  rollout::State& state = gone.rollout->state;
  if (const auto verdict = controller.explain(id)) state = read_verdict(*verdict).state;
  if (state.id == id) return gone;
  const auto phase = rollout::find_phase(text_at(status, {"phase"}));
  const bool told = phase && rollout::is_over(*phase);
  state = {.id = id, .canary = outcome.canary};
  state.phase = told ? *phase : rollout::Phase::kRolledBack;
  state.cause = told ? text_at(status, {"cause"}) : "superseded";
  state.reason = told ? text_at(status, {"reason"}) : "another rollout took its place";
  return gone;
}

void RolloutObjects::State::start(rollout::Spec spec, const std::string& name, ObjectOutcome& outcome) {
  const CommandRequest request{.actor = fmt::format("{}{}/{}", kActor, name_space, name), .if_match = std::nullopt, .reason = ""};
  auto applied = controller.apply(std::move(spec), request);
  if (!applied) {
    // Healthy endpoints may come, and a rollout that is in the way may end: it is tried again.
    outcome.reason = "Waiting";
    outcome.message = applied.error().message;
    return;
  }
  if (applied->action == ApplyAction::kStart || applied->action == ApplyAction::kReplace) {
    log::info("object '{}/{}': {}", name_space, name, applied->message);
    outcome.status = std::move(applied->status);
    return;
  }
  outcome.blocked = applied->action == ApplyAction::kBlocked;
  outcome.is_stable = applied->decided_by.id.empty();
  outcome.reason = outcome.blocked ? "RolledBack" : outcome.is_stable ? "IsStable" : "";
  outcome.message = outcome.reason.empty() ? "" : applied->message;
  if (outcome.is_stable) return;
  if (applied->status.rollout && applied->status.rollout->state.id == applied->decided_by.id) {
    outcome.status = std::move(applied->status);
  } else {
    outcome.status = ServiceStatus{.stable = applied->status.stable, .rollout = rollout::Report{}};
    outcome.status->rollout->state = applied->decided_by;
  }
}

ObjectOutcome RolloutObjects::State::outcome_of(const json::object& object, const std::vector<ServiceStatus>& now) {
  const std::string name = text_at(object, {"metadata", "name"});
  ObjectOutcome outcome;
  if (const json::value* generation = find_at(object, {"metadata", "generation"}); generation != nullptr && generation->is_int64())
    outcome.generation = generation->as_int64();
  outcome.revision = text_at(object, {"metadata", "annotations", kRevision});
  const auto refuse = [&](std::string message) {
    outcome.accepted = false;
    outcome.reason = "InvalidSpecification";
    outcome.message = std::move(message);
    return outcome;
  };
  const auto spec = read_rollout(object_at(object, "spec"), config);
  if (!spec) return refuse(spec.error().message);
  if (!outcome.revision.empty() && !rollout::is_revision(outcome.revision))
    return refuse(
        fmt::format("annotation {}: must be 1 to {} printable ASCII characters without spaces", kRevision, rollout::kLongestRevision));
  const auto service = std::ranges::find(config.services, spec->service, &ServiceConfig::name);
  if (version_index(*service, spec->canary) == Split::kNoCanary)
    return refuse(fmt::format("service '{}' has no version '{}'", spec->service, spec->canary));
  outcome.service = spec->service;
  outcome.canary = spec->canary;
  wishes[name] = {outcome.service, outcome.canary};
  outcome.status = started_before(outcome, object_at(object, "status"), now);
  if (outcome.status) return outcome;
  const std::string version = fmt::format("{} {} {}", outcome.generation, outcome.revision, outcome.service);
  const auto known = decisions.find(name);
  if (known != decisions.end() && known->second.version == version && Clock::now() < known->second.until) return known->second.outcome;
  rollout::Spec wanted = *spec;
  wanted.revision = outcome.revision;
  start(std::move(wanted), name, outcome);
  decisions[name] = {version, outcome, Clock::now() + kDecideAgain};
  if (outcome.status && is_running(*outcome.status)) decisions.erase(name);
  return outcome;
}

void RolloutObjects::State::write(const json::object& object, const ObjectOutcome& outcome) {
  const std::string name = text_at(object, {"metadata", "name"});
  const json::object& before = object_at(object, "status");
  json::object after = object_status(outcome, before, rfc3339(wall_milliseconds()));
  if (after == before) return;
  Clock::time_point& last = written_at[name];
  if (what_matters(after) == what_matters(before) && Clock::now() < last + kWriteEvidence) return;
  json::object patch = after;
  for (const auto& [key, value] : before)  // a merge patch removes nothing by itself
    if (!after.contains(key)) patch[key] = nullptr;
  const auto written = api.merge(fmt::format("{}/{}/status", path, name), {{"status", std::move(patch)}});
  last = Clock::now();
  if (!written) {
    stale = true;  // deleted meanwhile, or not reachable
    const bool news =
        written.error().code != Code::kNotFound && std::exchange(status_trouble, written.error().message) != written.error().message;
    if (news) log::error("the status of object '{}/{}': {}", name_space, name, written.error().message);
    return;
  }
  status_trouble.clear();
  const auto held = std::ranges::find(objects, name, [](const json::object& each) { return text_at(each, {"metadata", "name"}); });
  if (held != objects.end()) *held = *written;
}

/// The one that started it, as the audit log says.
std::string RolloutObjects::State::owner_of(const ServiceStatus& status) {
  const std::string& id = status.rollout->state.id;
  if (const auto known = owners.find(id); known != owners.end()) return known->second;
  const auto log = controller.history(status.service, kStartsWithin);
  if (!log) return "";
  for (const HistoryEntry& entry : *log)
    if (entry.rollout == id && entry.event == "started") return owners[id] = entry.actor;
  return owners[id] = "";
}

void RolloutObjects::State::end_those_without_object(const std::vector<ServiceStatus>& now) {
  const std::string own = fmt::format("{}{}/", kActor, name_space);
  std::set<std::string> running;
  for (const ServiceStatus& status : now) {
    if (!is_running(status)) continue;
    const std::string& id = status.rollout->state.id;
    running.insert(id);
    const std::string owner = owner_of(status);
    if (!owner.starts_with(own)) continue;
    const std::string name = owner.substr(own.size());
    const auto wish = wishes.find(name);
    const bool other =
        wish != wishes.end() && (wish->second.service != service_of(status.service) || wish->second.canary != status.rollout->state.canary);
    if (names.contains(name) && !other) continue;
    const std::string reason =
        fmt::format("its Rollout object '{}' {}", owner.substr(kActor.size()), other ? "asks for another version" : "was deleted");
    if (const auto ended = controller.abort(status.service, {.actor = owner, .if_match = status.epoch, .reason = reason}); !ended)
      log::error("rollout '{}': {}, and it could not be ended: {}", id, reason, ended.error().message);
  }
  std::erase_if(owners, [&](const auto& known) { return !running.contains(known.first); });
}

RolloutObjects::RolloutObjects(const kubernetes::Cluster& cluster, std::string group, const RouterConfig& config, Controller& controller)
    : state_(std::make_unique<State>(cluster, std::move(group), config, controller)) {}
RolloutObjects::~RolloutObjects() = default;

void RolloutObjects::end() { state_->end(); }
void RolloutObjects::wake() { state_->sleeper.wake(); }

}  // namespace serin::router
