// etcd_store.cc: the transactions of the store in etcd.
//
// Every write of the leader compares two things: that the key `leader` is still the one it created (a leader that lost its lease without noticing
// writes nothing), and that the state is the one it wrote or saw last. An attempt whose answer never came may have been done: the state says who
// wrote it and how far that came, so that the next attempt recognises it and writes on from there, no entry of the audit log twice.

#include "router/store/etcd_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/mutex.h"
#include "router/store/etcd_state.h"
#include "router/store/record_json.h"
#include "runtime/base/base64.h"

namespace serin::store {
namespace {

namespace json = boost::json;

constexpr int kLeaseSeconds = 5;
constexpr int64_t kLastEntry = 999'999'999'999;  // keys hold twelve digits

class EtcdStore final : public SharedStore {
 public:
  EtcdStore(EtcdOptions options, std::string prefix) : keys_{std::move(prefix)}, etcd_(std::move(options)) {}

  Result<Snapshot> look(bool agreed) override;
  void watch(std::function<void()> look_again) override { etcd_.watch(keys_.live(""), std::move(look_again)); }
  Status join(const Member& self) override;
  Status stay() override;
  void leave() override;
  Result<bool> lead() override;
  Status trip(const Trip& trip) override;
  Result<int64_t> save(const Change& change) override;
  Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) override;
  Result<std::optional<VerdictEntry>> verdict(const std::string& id) override;

 private:
  Result<json::object> range(const json::object& request) { return etcd_.call("/v3/kv/range", request); }
  Result<json::object> transaction(json::array compares, json::array then, json::array otherwise) {
    return etcd_.call("/v3/kv/txn", {{"compare", std::move(compares)}, {"success", std::move(then)}, {"failure", std::move(otherwise)}});
  }
  Status read_state(const KeyValue& kv, bool leads, Snapshot& snapshot);
  Result<bool> save_part(const Change& change, EtcdProgress& progress) SERIN_REQUIRES(saving_);

  const EtcdKeys keys_;
  EtcdClient etcd_;

  Mutex saving_;  // one save at a time
  Mutex mutex_;
  Member self_ SERIN_GUARDED_BY(mutex_);
  int64_t lease_ SERIN_GUARDED_BY(mutex_) = 0;            // 0: no member
  int64_t leader_revision_ SERIN_GUARDED_BY(mutex_) = 0;  // of the key that says this member leads; 0: it does not
  std::map<std::string, EtcdState> known_ SERIN_GUARDED_BY(mutex_);
};

// ---- reading ----

Status EtcdStore::read_state(const KeyValue& kv, bool leads, Snapshot& snapshot) {
  boost::system::error_code failure;
  const json::value value = json::parse(kv.value, failure);
  if (failure) return Error{Code::kCorrupt, kv.key + " is no JSON"};
  SERIN_TRY(ServiceRecord record, service_from_json(value));
  const MutexLock lock(mutex_);
  EtcdState& known = known_[record.service];
  if (kv.modified > known.revision) {
    EtcdState seen = EtcdState::read(kv);
    // What this router wrote without being told so save() must meet: it knows what is still to be written.
    if (!leads || seen.mark.writer != self_.secret) known = std::move(seen);
  }
  snapshot.services.push_back({std::move(record), kv.modified});
  return {};
}

Result<Snapshot> EtcdStore::look(bool agreed) {
  const std::string prefix = keys_.live("");
  json::object request{{"key", encode_base64(prefix)}, {"range_end", encode_base64(after_prefix(prefix))}};
  if (!agreed) request["serializable"] = true;
  SERIN_TRY(const json::object answer, range(request));
  Snapshot snapshot;
  int64_t leads = 0;
  for (const KeyValue& kv : read_range(answer)) {
    const std::string_view name = std::string_view(kv.key).substr(prefix.size());
    if (name == "leader") {
      snapshot.leader = kv.value;
      const MutexLock lock(mutex_);
      if (kv.value == self_.id && kv.lease == lease_ && lease_ != 0) leads = kv.created;
      continue;
    }
    if (name.starts_with("state/")) {
      SERIN_CHECK(read_state(kv, leads != 0, snapshot));  // "leader" comes before it
      continue;
    }
    boost::system::error_code failure;
    const json::value value = json::parse(kv.value, failure);
    if (name.starts_with("trip/")) {
      SERIN_TRY(Trip trip, trip_from_json(value));
      snapshot.trips.push_back(std::move(trip));
    } else if (name.starts_with("member/")) {
      SERIN_TRY(Member member, member_from_json(value));
      snapshot.members.push_back(std::move(member));
    }
  }
  const MutexLock lock(mutex_);
  if (agreed) leader_revision_ = leads;
  snapshot.leads = agreed && leads != 0;
  return snapshot;
}

Result<std::vector<HistoryEntry>> EtcdStore::history(const std::string& service, size_t limit) {
  SERIN_TRY(const json::object answer, range({{"key", encode_base64(keys_.audit(service, 0))},
                                              {"range_end", encode_base64(keys_.audit(service, kLastEntry))},
                                              {"limit", std::to_string(std::min(limit, kHistoryLimit))},
                                              {"sort_order", "DESCEND"},
                                              {"sort_target", "KEY"}}));
  std::vector<HistoryEntry> entries;
  for (const KeyValue& kv : read_range(answer)) {
    boost::system::error_code failure;
    const json::value value = json::parse(kv.value, failure);
    SERIN_TRY(HistoryEntry entry, entry_from_json(value));
    entries.push_back(std::move(entry));
  }
  std::ranges::reverse(entries);
  return entries;
}

Result<std::optional<VerdictEntry>> EtcdStore::verdict(const std::string& id) {
  SERIN_TRY(const json::object answer, range({{"key", encode_base64(keys_.verdict(id))}}));
  const auto found = read_range(answer);
  if (found.empty()) return std::optional<VerdictEntry>();
  return std::optional(VerdictEntry{.id = id, .json = found.front().value});
}

// ---- being a member ----

Status EtcdStore::join(const Member& self) {
  int64_t lease = 0;
  {
    const MutexLock lock(mutex_);
    self_ = self;
    lease = lease_;
  }
  if (lease == 0) {
    SERIN_TRY(const json::object granted, etcd_.call("/v3/lease/grant", {{"TTL", std::to_string(kLeaseSeconds)}}));
    lease = int64_of(granted, "ID");
    if (lease == 0) return Error{Code::kCorrupt, "etcd: granted a lease without an ID"};
    const MutexLock lock(mutex_);
    lease_ = lease;
  }
  const std::string key = keys_.live("member/" + self.id);
  const json::object write = put(key, json::serialize(to_json(self)), lease);
  for (const json::object& condition : {lease_is(key, lease), created_is(key, 0)}) {  // ours already, or nobody's
    const auto answer = transaction({condition}, {write}, {});
    if (answer && succeeded(*answer)) return {};
    if (answer) continue;
    if (answer.error().code == Code::kNotFound) {  // the lease is over
      const MutexLock lock(mutex_);
      lease_ = leader_revision_ = 0;
    }
    return answer.error();
  }
  return Error{Code::kAlreadyExists, fmt::format("a router named '{}' is alive, or was until a moment ago", self.id)};
}

Status EtcdStore::stay() {
  int64_t lease = 0;
  {
    const MutexLock lock(mutex_);
    lease = lease_;
  }
  if (lease == 0) return Error{Code::kNotFound, "no member"};
  SERIN_TRY(const json::object answer, etcd_.call("/v3/lease/keepalive", {{"ID", std::to_string(lease)}}));
  const json::value* result = answer.if_contains("result");
  if (result != nullptr && result->is_object() && int64_of(result->as_object(), "TTL") > 0) return {};
  const MutexLock lock(mutex_);
  lease_ = leader_revision_ = 0;
  return Error{Code::kNotFound, "the lease is over"};
}

void EtcdStore::leave() {
  int64_t lease = 0;
  {
    const MutexLock lock(mutex_);
    std::swap(lease, lease_);
    leader_revision_ = 0;
  }
  if (lease != 0) (void)etcd_.call("/v3/lease/revoke", {{"ID", std::to_string(lease)}}).has_value();  // else it ends by itself
}

Result<bool> EtcdStore::lead() {
  std::string id;
  int64_t lease = 0;
  {
    const MutexLock lock(mutex_);
    id = self_.id;
    lease = lease_;
  }
  if (lease == 0) return false;
  const std::string key = keys_.live("leader");
  SERIN_TRY(const json::object answer, transaction({created_is(key, 0)}, {put(key, id, lease)}, {get(key)}));
  const auto there = read_response(answer, 0);
  const MutexLock lock(mutex_);
  if (lease != lease_) return false;
  if (succeeded(answer))
    leader_revision_ = revision_of(answer);
  else if (there && there->value == id && there->lease == lease)
    leader_revision_ = there->created;  // an attempt whose answer did not come
  return leader_revision_ != 0;
}

// ---- writing ----

Status EtcdStore::trip(const Trip& trip) {
  const std::string key = keys_.trip(trip.service, trip.rollout);
  SERIN_CHECK(transaction({created_is(key, 0)}, {put(key, json::serialize(to_json(trip)))}, {}));
  return {};
}

Result<int64_t> EtcdStore::save(const Change& change) {
  const MutexLock saving(saving_);
  EtcdProgress progress;
  while (true) {
    SERIN_TRY(const bool written, save_part(change, progress));
    if (written) break;
  }
  const MutexLock lock(mutex_);
  return known_[change.record.service].revision;
}

/// One transaction. True: all of the change is written.
Result<bool> EtcdStore::save_part(const Change& change, EtcdProgress& progress) {
  const std::string& service = change.record.service;
  const std::string leader_key = keys_.live("leader"), key = keys_.state(service);
  EtcdState next;
  int64_t leads = 0, revision = 0;
  EtcdProgress after = progress;
  json::array then;
  {
    const MutexLock lock(mutex_);
    if (leader_revision_ == 0) return Error{Code::kConflict, "this router does not lead"};
    next = known_[service];
    leads = leader_revision_;
    revision = next.revision;
    then = next.write(change, keys_, self_.secret, after);
  }
  SERIN_TRY(const json::object answer,
            transaction({created_is(leader_key, leads), modified_is(key, revision)}, std::move(then), {get(leader_key), get(key)}));
  const MutexLock lock(mutex_);
  EtcdState& held = known_[service];
  if (succeeded(answer)) {
    next.revision = revision_of(answer);
    held = std::move(next);
    progress = after;
    return progress.entries == change.history.size() && progress.verdicts == change.verdicts.size();
  }
  const auto leader = read_response(answer, 0), there = read_response(answer, 1);
  if (!leader || leader->created != leads) {
    leader_revision_ = 0;
    return Error{Code::kConflict, "this router is no longer the leader"};
  }
  EtcdState seen = there ? EtcdState::read(*there) : EtcdState();
  const bool is_own = seen.mark.writer == self_.secret && seen.revision > held.revision;
  if (is_own)
    progress = {std::min(seen.mark.progress.entries, change.history.size()), std::min(seen.mark.progress.verdicts, change.verdicts.size())};
  held = std::move(seen);
  if (is_own) return false;  // written by an attempt whose answer never came; go on from there
  return Error{Code::kConflict, fmt::format("the state of service '{}' has changed since this router last read it", service)};
}

}  // namespace

std::unique_ptr<SharedStore> make_etcd_store(EtcdOptions options, std::string prefix) {
  return std::make_unique<EtcdStore>(std::move(options), std::move(prefix));
}

}  // namespace serin::store
