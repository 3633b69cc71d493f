// kubernetes_store.cc: the rules of etcd_store.cc on an API that changes one object at a time. An attempt whose answer never came may have
// been done: the state says which run of a router wrote it and how much of the change, so that the next attempt recognises it.

#include "router/store/kubernetes_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/mutex.h"
#include "router/store/history_chain.h"
#include "router/store/kubernetes_leases.h"
#include "router/store/kubernetes_state.h"
#include "router/store/record_json.h"
#include "runtime/base/log.h"

namespace serin::store {
namespace {

namespace json = boost::json;
using kubernetes::ApiClient;
using kubernetes::text_at;
using Clock = KubernetesLeases::Clock;

constexpr std::string_view kLive = "serin.dev/type in (state,trip,member)";
constexpr std::chrono::seconds kForgetMember{60}, kLeadFor = kLeaseTime - std::chrono::seconds(1);
constexpr size_t kRunDigits = 16;
constexpr int kAttempts = 3;

Result<json::value> data_of(const json::object& record) {
  boost::system::error_code failure;
  json::value data = json::parse(text_at(record, {"spec", "data"}), failure);
  if (failure || !data.is_object())
    return Error{Code::kCorrupt, fmt::format("{} is no JSON object", text_at(record, {"metadata", "name"}))};
  return data;
}

std::string version_of(const json::object& object) { return text_at(object, {"metadata", "resourceVersion"}); }

class KubernetesStore final : public SharedStore {
 public:
  KubernetesStore(kubernetes::Cluster cluster, std::string group)
      : group_(std::move(group)),
        records_(fmt::format("/apis/serin.dev/v1/namespaces/{}/routerrecords", cluster.name_space)),
        leases_path_(fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", cluster.name_space)),
        api_(std::move(cluster)) {}

  Result<Snapshot> look(bool agreed) override;
  void watch(std::function<void()> look_again) override;
  Status join(const Member& self) override;
  Status stay() override;
  void leave() override;
  Result<bool> lead() override;
  Status trip(const Trip& trip) override;
  Result<int64_t> save(const Change& change) override;
  Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) override;
  Result<std::optional<VerdictEntry>> verdict(const std::string& id) override;

 private:
  std::string selector(std::string_view types) const {
    return "?labelSelector=" + kubernetes::escaped(fmt::format("serin.dev/routers={}{}{}", group_, types.empty() ? "" : ",", types));
  }
  std::string record_path(const std::string& name) const { return records_ + "/" + name; }
  /// Of an object of this group.
  std::string name_of(std::string_view type, std::string_view readable, std::string_view key) const {
    return object_name(type, readable, fmt::format("{}\n{}", group_, key));
  }
  std::string lease_name(const std::string& id) const {
    return id.empty() ? group_ : fmt::format("{}-{}", group_, object_name("router", id, id));
  }
  std::string lease_path(const std::string& id) const { return fmt::format("{}/{}", leases_path_, lease_name(id)); }
  json::object record(const std::string& name, std::string_view type, std::string_view service, std::string data,
                      const std::string& version = {}) const;
  Status put(const std::string& name, std::string_view type, std::string_view service, const json::object& data);
  Status read_record(const json::object& record, Snapshot& snapshot);
  Status read_state(const json::object& record, const json::value& data, Snapshot& snapshot);
  Status read_member(const json::object& record);
  void read_members(Snapshot& snapshot);
  void ignore(const json::object& record, const Error& why);
  void notice_loss();
  void clean(const Snapshot& snapshot);
  bool believes() const SERIN_REQUIRES(mutex_) { return claimed_ && Clock::now() < leads_until_; }
  void step_down() SERIN_REQUIRES(mutex_) {
    leads_until_ = {};
    claimed_ = false;
  }
  Status renew_lead(json::object lease, const std::string& holder);
  Result<bool> claim_states();
  Result<bool> save_once(const Change& change, KubernetesProgress& progress) SERIN_REQUIRES(saving_);
  Result<bool> after_conflict(const Change& change, const json::object& asked, KubernetesProgress& progress) SERIN_REQUIRES(saving_);

  const std::string group_, records_, leases_path_;
  ApiClient api_;

  Mutex saving_;  // one save at a time
  Mutex mutex_;
  std::unique_ptr<kubernetes::ApiWatch> watch_ SERIN_GUARDED_BY(mutex_);
  Member self_ SERIN_GUARDED_BY(mutex_);
  std::string run_ SERIN_GUARDED_BY(mutex_);  // "<id>/<digits>": differs between two runs of a router with one name
  bool member_ SERIN_GUARDED_BY(mutex_) = false;
  bool looked_ SERIN_GUARDED_BY(mutex_) = false;  // at what is agreed
  Clock::time_point leads_until_ SERIN_GUARDED_BY(mutex_){};
  bool claimed_ SERIN_GUARDED_BY(mutex_) = false;  // since leads_until_ began: the states have this leader's mark
  json::object leader_ SERIN_GUARDED_BY(mutex_);   // the lease as it was seen last; empty: there is none
  KubernetesLeases leases_ SERIN_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, Member>> recorded_ SERIN_GUARDED_BY(mutex_);  // members by the name of their record
  std::map<std::string, KubernetesState> known_ SERIN_GUARDED_BY(mutex_);
  std::set<std::string> ignored_ SERIN_GUARDED_BY(mutex_);  // resourceVersions of records that were complained of
};

// ---- reading ----

void KubernetesStore::watch(std::function<void()> look_again) {
  auto next =
      look_again ? std::make_unique<kubernetes::ApiWatch>(api_.cluster(), records_ + selector(kLive), std::move(look_again)) : nullptr;
  const MutexLock lock(mutex_);
  next.swap(watch_);
}

Status KubernetesStore::read_state(const json::object& record, const json::value& data, Snapshot& snapshot) {
  SERIN_TRY(ServiceRecord service, service_from_json(data));
  KubernetesState seen = KubernetesState::read(data.as_object(), version_of(record));
  const int64_t revision = seen.revision;
  const MutexLock lock(mutex_);
  KubernetesState& known = known_[service.service];
  // What this router wrote without being told so save() must meet: it knows what is still to be written.
  const bool untold = believes() && seen.writer == run_ && seen.revision > known.revision;
  if (!untold && seen.revision >= known.revision) known = std::move(seen);
  snapshot.services.push_back({std::move(service), revision});
  return {};
}

Status KubernetesStore::read_record(const json::object& record, Snapshot& snapshot) {
  const std::string type = text_at(record, {"metadata", "labels", "serin.dev/type"});
  if (type == "member") {
    if (const Status read = read_member(record); !read) ignore(record, read.error());
    return {};
  }
  SERIN_TRY(const json::value data, data_of(record));
  if (type == "state") return read_state(record, data, snapshot);
  if (type == "trip") {
    SERIN_TRY(Trip trip, trip_from_json(data));
    snapshot.trips.push_back(std::move(trip));
  }
  return {};
}

Status KubernetesStore::read_member(const json::object& record) {
  SERIN_TRY(const json::value data, data_of(record));
  SERIN_TRY(Member member, member_from_json(data));
  if (member.id.empty()) return Error{Code::kCorrupt, fmt::format("{} names no router", text_at(record, {"metadata", "name"}))};
  const MutexLock lock(mutex_);
  recorded_.emplace_back(text_at(record, {"metadata", "name"}), std::move(member));
  return {};
}

/// A damaged record of a router must not keep the others from deciding. Its owner misses it, and writes it again (notice_loss).
void KubernetesStore::ignore(const json::object& record, const Error& why) {
  const MutexLock lock(mutex_);
  if (ignored_.insert(version_of(record)).second) log::warning("Kubernetes API: a record of a router is ignored: {}", why.message);
}

void KubernetesStore::read_members(Snapshot& snapshot) {
  const MutexLock lock(mutex_);
  for (const auto& [name, member] : recorded_)
    if (leases_.counts(lease_name(member.id))) snapshot.members.push_back(member);
  const std::string holder = text_at(leader_, {"spec", "holderIdentity"});
  const bool own = !run_.empty() && holder == run_;
  if (!own || !believes()) step_down();
  // Its own lease that was not renewed in time is nobody's: lead() takes it again.
  if (!holder.empty() && (own ? believes() : leases_.alive(group_))) snapshot.leader = holder.substr(0, holder.rfind('/'));
  snapshot.leads = own && believes();
}

Result<Snapshot> KubernetesStore::look(bool agreed) {
  // Without a resourceVersion the answer is the latest state that a majority of the server's etcd has; with 0 it may be old.
  const std::string old = agreed ? "" : "&resourceVersion=0";
  // The leases first: what a leader wrote before its lease ended is then in the records.
  SERIN_TRY(const json::object leases, api_.list(leases_path_ + selector("") + old));
  SERIN_TRY(const json::object records, api_.list(records_ + selector(kLive) + old));
  {
    const MutexLock lock(mutex_);
    recorded_.clear();
    leases_.see(leases.at("items").as_array(), Clock::now());
    leader_.clear();
    for (const json::value& lease : leases.at("items").as_array())
      if (lease.is_object() && text_at(lease.as_object(), {"metadata", "name"}) == group_) leader_ = lease.as_object();
  }
  Snapshot snapshot;
  for (const json::value& item : records.at("items").as_array())
    if (item.is_object()) SERIN_CHECK(read_record(item.as_object(), snapshot));
  read_members(snapshot);
  if (agreed) notice_loss();
  snapshot.leads = snapshot.leads && agreed;
  if (snapshot.leads) clean(snapshot);
  return snapshot;
}

/// Whoever removed the record of this router: it is written again with the next stay().
void KubernetesStore::notice_loss() {
  const MutexLock lock(mutex_);
  looked_ = true;
  if (std::ranges::none_of(recorded_, [this](const auto& each) SERIN_REQUIRES(mutex_) { return each.second.id == self_.id; }))
    member_ = false;
}

/// Removes trips of earlier rollouts, and routers that ended without a word. The next look tries again when it fails.
void KubernetesStore::clean(const Snapshot& snapshot) {
  std::vector<std::string> unneeded;
  for (const Trip& trip : snapshot.trips) {
    const auto about = std::ranges::find(snapshot.services, trip.service, [](const SharedService& s) { return s.record.service; });
    const bool current =
        about != snapshot.services.end() && about->record.rollout && about->record.rollout->report.state.id == trip.rollout;
    if (!current) unneeded.push_back(record_path(name_of("trip", trip.rollout, trip.service + "\n" + trip.rollout)));
  }
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, member] : recorded_) {
      const bool gone = !leases_.exists(lease_name(member.id)) || leases_.age(lease_name(member.id)) >= kForgetMember;
      if (!gone || member.id == self_.id) continue;
      if (leases_.exists(lease_name(member.id))) unneeded.push_back(lease_path(member.id));
      unneeded.push_back(record_path(name));  // last: it names the lease
    }
  }
  for (const std::string& path : unneeded)
    if (const Status removed = api_.remove(path); !removed && removed.error().code != Code::kNotFound) return;
}

Result<std::vector<HistoryEntry>> KubernetesStore::history(const std::string& service, size_t limit) {
  const std::string name = name_of("state", service, service);
  auto record = api_.get(record_path(name));
  if (!record && record.error().code == Code::kNotFound) return std::vector<HistoryEntry>();
  if (!record) return record.error();
  SERIN_TRY(const json::value data, data_of(*record));
  KubernetesState state = KubernetesState::read(data.as_object(), version_of(*record));
  std::vector<HistoryEntry> entries = std::move(state.latest);
  for (; entries.size() < limit && !state.pages.empty(); state.pages.pop_back()) {
    SERIN_TRY(const json::object page, api_.get(record_path(state.pages.back())));
    SERIN_TRY(std::vector<HistoryEntry> earlier, read_page(text_at(page, {"spec", "data"})));
    earlier.insert(earlier.end(), std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
    entries = std::move(earlier);
  }
  if (entries.size() > limit) entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(limit));
  return entries;
}

Result<std::optional<VerdictEntry>> KubernetesStore::verdict(const std::string& id) {
  std::string name;
  {
    const MutexLock lock(mutex_);
    for (const auto& [service, state] : known_)
      for (const KubernetesState::Verdict& verdict : state.verdicts)
        if (verdict.id == id) name = verdict.object;
  }
  if (name.empty()) return std::optional<VerdictEntry>();
  SERIN_TRY(const json::object record, api_.get(record_path(name)));
  return std::optional(VerdictEntry{.id = id, .json = text_at(record, {"spec", "data"})});
}

// ---- being a member ----

json::object KubernetesStore::record(const std::string& name, std::string_view type, std::string_view service, std::string data,
                                     const std::string& version) const {
  json::object metadata{{"name", name}, {"labels", json::object{{"serin.dev/routers", group_}, {"serin.dev/type", type}}}};
  if (!version.empty()) metadata["resourceVersion"] = version;
  return {{"apiVersion", "serin.dev/v1"},
          {"kind", "RouterRecord"},
          {"metadata", std::move(metadata)},
          {"spec", json::object{{"service", service}, {"data", std::move(data)}}}};
}

/// Creates or replaces what only this router writes.
Status KubernetesStore::put(const std::string& name, std::string_view type, std::string_view service, const json::object& data) {
  const json::object object = record(name, type, service, json::serialize(data));
  const auto created = api_.create(records_, object);
  if (created || created.error().code != Code::kAlreadyExists) return created ? Status() : Status(created.error());
  SERIN_CHECK(api_.merge(record_path(name), object));
  return {};
}

Status KubernetesStore::join(const Member& self) {
  const std::string lease = lease_name(self.id), run = fmt::format("{}/{}", self.id, sha256(self.secret).substr(0, kRunDigits));
  bool is_member = false, has_looked = false;
  {
    const MutexLock lock(mutex_);
    has_looked = looked_;
  }
  if (!has_looked) SERIN_CHECK(look(/*agreed=*/true));  // to see whether the name is taken
  {
    const MutexLock lock(mutex_);
    self_ = self;
    run_ = run;
    is_member = member_;
    const auto same = std::ranges::find(recorded_, self.id, [](const auto& each) { return each.second.id; });
    if (same != recorded_.end() && same->second.secret != self.secret && leases_.alive(lease))
      return Error{Code::kAlreadyExists, fmt::format("a router named '{}' is alive, or was until a moment ago", self.id)};
  }
  if (!is_member) {
    const json::object held = make_lease(lease, group_, run);
    const auto created = api_.create(leases_path_, held);
    if (!created && created.error().code != Code::kAlreadyExists) return created.error();
    if (!created) SERIN_CHECK(api_.merge(lease_path(self.id), held));
  }
  SERIN_CHECK(put(name_of("member", self.id, self.id), "member", "", to_json(self)));  // after the lease: without one it would be removed
  const MutexLock lock(mutex_);
  member_ = true;
  return {};
}

Status KubernetesStore::stay() {
  std::string id, run;
  json::object leader;
  {
    const MutexLock lock(mutex_);
    if (!member_) return Error{Code::kNotFound, "no member"};
    id = self_.id;
    run = run_;
    if (text_at(leader_, {"spec", "holderIdentity"}) == run) leader = leader_;
  }
  const json::object renewed{{"spec", json::object{{"renewTime", micro_time(std::chrono::system_clock::now())}}}};
  const auto stayed = api_.merge(lease_path(id), renewed);
  if (!stayed) {
    const MutexLock lock(mutex_);
    if (stayed.error().code == Code::kNotFound) member_ = false;
    return stayed.error();
  }
  if (!leader.empty() && !renew_lead(std::move(leader), run)) return Error{Code::kUnavailable, "the lease of the leader was not renewed"};
  return {};
}

/// Writes the lease over the version that `lease` has. This router holds it from the time at which it asked.
Status KubernetesStore::renew_lead(json::object lease, const std::string& holder) {
  const auto asked = Clock::now();
  lease["spec"].as_object()["renewTime"] = micro_time(std::chrono::system_clock::now());
  auto written = api_.replace(lease_path(""), lease);
  if (!written && written.error().code == Code::kConflict) {  // perhaps by its own attempt, whose answer was lost
    auto there = api_.get(lease_path(""));
    if (there && text_at(*there, {"spec", "holderIdentity"}) == holder) written = std::move(there);
  }
  const MutexLock lock(mutex_);
  if (!written) {
    const Code code = written.error().code;
    if (code == Code::kConflict || code == Code::kNotFound) {
      step_down();  // another one has it; the next look says so
      leader_.clear();
    }
    return written.error();
  }
  if (!believes()) claimed_ = false;  // the time before is over, and others may have written
  if (run_ == holder) leads_until_ = asked + kLeadFor;
  leader_ = *std::move(written);
  return {};
}

void KubernetesStore::leave() {
  std::string id;
  json::object leader;
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(member_, false)) return;
    id = self_.id;
    if (believes()) leader = leader_;
    step_down();
  }
  // Each waits for the server, so the first failure ends it. Then the leases end by themselves.
  if (!api_.remove(lease_path(id))) return;
  if (!leader.empty()) {
    leader["spec"].as_object()["holderIdentity"] = "";
    if (!api_.replace(lease_path(""), leader)) return;
  }
  (void)api_.remove(record_path(name_of("member", id, id))).has_value();
}

Result<bool> KubernetesStore::lead() {
  std::string run;
  {
    const MutexLock lock(mutex_);
    if (!member_) return false;
    run = run_;
  }
  auto lease = api_.get(lease_path(""));
  if (!lease && lease.error().code != Code::kNotFound) return lease.error();
  const auto asked = Clock::now();
  if (!lease) {
    auto created = api_.create(leases_path_, make_lease(group_, group_, run));
    if (!created && created.error().code == Code::kAlreadyExists) return false;
    if (!created) return created.error();
    const MutexLock lock(mutex_);
    leader_ = *std::move(created);
    leads_until_ = asked + kLeadFor;
  } else {
    const std::string holder = text_at(*lease, {"spec", "holderIdentity"});
    {
      const MutexLock lock(mutex_);
      // The lease of a live holder, and one that was written after the last look.
      const bool unchanged = version_of(*lease) == version_of(leader_);
      if (!holder.empty() && holder != run && (leases_.alive(group_) || !unchanged)) return false;
    }
    json::object& spec = (*lease)["spec"].as_object();
    if (holder != run) {
      const json::value* before = spec.if_contains("leaseTransitions");
      spec["leaseTransitions"] = (before != nullptr && before->is_int64() ? before->as_int64() : 0) + 1;
      spec["acquireTime"] = micro_time(std::chrono::system_clock::now());
      spec["holderIdentity"] = run;
    }
    const Status taken = renew_lead(*std::move(lease), run);
    if (!taken && taken.error().code == Code::kConflict) return false;
    if (!taken) return taken.error();
  }
  auto claimed = claim_states();
  const MutexLock lock(mutex_);
  claimed_ = claimed && *claimed;
  if (!claimed_) step_down();
  return claimed;
}

/// Changes the version of each state, so that a former leader's next compare-and-swap fails. False: one has changed since the last look, so
/// this router must look again before it leads.
Result<bool> KubernetesStore::claim_states() {
  std::string run;
  std::map<std::string, int64_t> revisions;
  {
    const MutexLock lock(mutex_);
    run = run_;
    for (const auto& [service, state] : known_)
      if (!state.version.empty()) revisions[service] = state.revision;
  }
  const std::string by = fmt::format("{}@{}", run, micro_time(std::chrono::system_clock::now()));
  const json::object mark{{"metadata", json::object{{"annotations", json::object{{"serin.dev/leader", by}}}}}};
  for (const auto& [service, revision] : revisions) {
    const auto record = api_.merge(record_path(name_of("state", service, service)), mark);
    if (!record && record.error().code == Code::kNotFound) continue;
    if (!record) return record.error();
    SERIN_TRY(const json::value data, data_of(*record));
    const KubernetesState marked = KubernetesState::read(data.as_object(), version_of(*record));
    if (marked.revision != revision) return false;
    const MutexLock lock(mutex_);
    known_[service].version = marked.version;
  }
  return true;
}

// ---- writing ----

Status KubernetesStore::trip(const Trip& trip) {
  const std::string name = name_of("trip", trip.rollout, trip.service + "\n" + trip.rollout);
  const auto created = api_.create(records_, record(name, "trip", trip.service, json::serialize(to_json(trip))));
  if (created || created.error().code == Code::kAlreadyExists) return {};
  return created.error();
}

Result<int64_t> KubernetesStore::save(const Change& change) {
  const MutexLock saving(saving_);
  KubernetesProgress progress;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    SERIN_TRY(const bool written, save_once(change, progress));
    if (!written) continue;
    const MutexLock lock(mutex_);
    return known_[change.record.service].revision;
  }
  return Error{Code::kUnavailable, "the Kubernetes API: answers are lost again and again"};
}

/// True: it is written. False: an earlier attempt was, so the next one goes on from there.
Result<bool> KubernetesStore::save_once(const Change& change, KubernetesProgress& progress) {
  const std::string& service = change.record.service;
  const std::string name = name_of("state", service, service);
  KubernetesState next;
  std::vector<KubernetesBlob> before;
  std::vector<std::string> unneeded;
  json::object object;
  {
    const MutexLock lock(mutex_);
    if (!believes()) return Error{Code::kConflict, "this router does not lead"};
    next = known_[service];
    const std::string version = next.version;
    object = record(name, "state", service,
                    json::serialize(next.write(change, {.group = group_, .writer = run_}, progress, before, unneeded)), version);
  }
  for (const KubernetesBlob& blob : before) {
    const auto created = api_.create(records_, record(blob.name, blob.type, blob.service, blob.data));
    if (!created && created.error().code != Code::kAlreadyExists) return created.error();
  }
  const auto written = next.version.empty() ? api_.create(records_, object) : api_.replace(record_path(name), object);
  if (!written) {
    const Code code = written.error().code;
    if (code != Code::kConflict && code != Code::kAlreadyExists && code != Code::kNotFound) return written.error();
    return after_conflict(change, object, progress);
  }
  next.version = version_of(*written);
  {
    const MutexLock lock(mutex_);
    known_[service] = std::move(next);
  }
  for (const std::string& old : unneeded)
    if (const Status removed = api_.remove(record_path(old)); !removed && removed.error().code != Code::kNotFound) break;
  return true;
}

/// True: what was asked is what is there, written by an attempt whose answer was lost. False: an earlier save was written so.
Result<bool> KubernetesStore::after_conflict(const Change& change, const json::object& asked, KubernetesProgress& progress) {
  KubernetesState seen;
  auto record = api_.get(record_path(text_at(asked, {"metadata", "name"})));
  if (!record && record.error().code != Code::kNotFound) return record.error();
  if (record) {
    SERIN_TRY(const json::value data, data_of(*record));
    seen = KubernetesState::read(data.as_object(), version_of(*record));
  }
  const MutexLock lock(mutex_);
  KubernetesState& held = known_[change.record.service];
  if (seen.version.empty()) {  // somebody has removed it: it is written anew, and its revision goes on
    held.version.clear();
    return false;
  }
  const bool own = seen.writer == run_ && seen.revision > held.revision;
  if (!own) {
    // Another one wrote: this router leads no longer, until it has looked again.
    step_down();
    return Error{Code::kConflict,
                 fmt::format("the state of service '{}' has changed since this router last read it", change.record.service)};
  }
  progress = seen.wrote;
  held = std::move(seen);
  return text_at(*record, {"spec", "data"}) == text_at(asked, {"spec", "data"});
}

}  // namespace

std::unique_ptr<SharedStore> make_kubernetes_store(kubernetes::Cluster cluster, std::string group) {
  return std::make_unique<KubernetesStore>(std::move(cluster), std::move(group));
}

}  // namespace serin::store
