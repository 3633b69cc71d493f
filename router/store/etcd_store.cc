// etcd_store.cc: a few transactions.
//
// Every write of the leader compares two things: that the key `leader` is still the one it created (a leader that lost its lease without noticing
// writes nothing), and that the state is the one it wrote or saw last. An attempt whose answer never came may have been done: each carries a mark,
// so that the next attempt recognises its own and writes on from there, no entry of the audit log twice.

#include "router/store/etcd_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "router/store/history_chain.h"
#include "router/store/record_json.h"

namespace serin::store {
namespace {

namespace json = boost::json;

constexpr int kLeaseSeconds = 5;
constexpr size_t kEntriesAtOnce = 100, kVerdictsAtOnce = 10;  // a transaction holds 128 operations

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? from_base64(value->as_string()) : std::string();
}

/// The keys and values of a range's answer.
struct KeyValue {
  std::string key, value;
  int64_t created = 0, modified = 0, lease = 0;
};
std::vector<KeyValue> read_range(const json::object& answer) {
  std::vector<KeyValue> all;
  const json::value* list = answer.if_contains("kvs");
  if (list == nullptr || !list->is_array()) return all;
  for (const json::value& one : list->as_array()) {
    if (!one.is_object()) continue;
    const json::object& kv = one.as_object();
    all.push_back(
        {text_of(kv, "key"), text_of(kv, "value"), int64_of(kv, "create_revision"), int64_of(kv, "mod_revision"), int64_of(kv, "lease")});
  }
  return all;
}

int64_t revision_of(const json::object& answer) {
  const json::value* header = answer.if_contains("header");
  return header != nullptr && header->is_object() ? int64_of(header->as_object(), "revision") : 0;
}

bool succeeded(const json::object& answer) {
  const json::value* value = answer.if_contains("succeeded");
  return value != nullptr && value->is_bool() && value->as_bool();
}

json::object put(const std::string& key, const std::string& value, int64_t lease = 0) {
  json::object request{{"key", base64(key)}, {"value", base64(value)}};
  if (lease != 0) request["lease"] = std::to_string(lease);
  return {{"request_put", std::move(request)}};
}
json::object remove_range(const std::string& from, const std::string& to) {
  return {{"request_delete_range", json::object{{"key", base64(from)}, {"range_end", base64(to)}}}};
}
json::object remove(const std::string& key) { return {{"request_delete_range", json::object{{"key", base64(key)}}}}; }
json::object compare(const char* target, const char* field, const std::string& key, int64_t revision) {
  return {{"target", target}, {"key", base64(key)}, {"result", "EQUAL"}, {field, std::to_string(revision)}};
}
json::object created_is(const std::string& key, int64_t revision) { return compare("CREATE", "create_revision", key, revision); }
json::object modified_is(const std::string& key, int64_t revision) { return compare("MOD", "mod_revision", key, revision); }
json::object get(const std::string& key) { return {{"request_range", json::object{{"key", base64(key)}}}}; }

/// What the failure branch of a transaction has read; nothing where that key is not there.
std::optional<KeyValue> read_response(const json::object& answer, size_t index) {
  const json::value* responses = answer.if_contains("responses");
  if (responses == nullptr || !responses->is_array() || index >= responses->as_array().size()) return std::nullopt;
  const json::object* response = responses->as_array()[index].if_object();
  const json::value* range = response == nullptr ? nullptr : response->if_contains("response_range");
  if (range == nullptr || !range->is_object()) return std::nullopt;
  auto found = read_range(range->as_object());
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

class EtcdStore final : public SharedStore {
 public:
  EtcdStore(EtcdOptions options, std::string prefix) : prefix_(std::move(prefix)), etcd_(std::move(options)) {}

  Result<Snapshot> look(bool agreed) override;
  void watch(std::function<void()> look_again) override { etcd_.watch(live(""), std::move(look_again)); }
  Status join(const Member& self) override;
  Status stay() override;
  void leave() override;
  Result<bool> lead() override;
  Status trip(const Trip& trip) override;
  Result<int64_t> save(const Change& change) override;
  Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) override;
  Result<std::optional<VerdictEntry>> verdict(const std::string& id) override;

 private:
  /// How much of a change's history and verdicts is written.
  struct Progress {
    size_t entries = 0, verdicts = 0;
  };
  /// What is known of a service's state key.
  struct Known {
    int64_t revision = 0;  // 0: the key is not there
    int64_t entries = 0;   // of the audit log, ever
    std::string digest;    // of the last one
    std::string rollout;   // id
    std::vector<std::string> verdicts;
    std::string mark;                          // of the attempt that wrote it
    std::map<std::string, Progress> attempts;  // by mark: those since the last that is known to be done, and how far each would have come
  };

  std::string live(std::string_view rest) const { return fmt::format("{}/live/{}", prefix_, rest); }
  std::string state_key(const std::string& service) const { return live("state/" + service); }
  std::string audit_key(const std::string& service, int64_t number) const {
    return fmt::format("{}/audit/{}/{:012}", prefix_, service, number);
  }
  std::string verdict_key(const std::string& id) const { return fmt::format("{}/verdict/{}", prefix_, id); }

  Result<json::object> range(const json::object& request) { return etcd_.call("/v3/kv/range", request); }
  Result<json::object> transaction(json::array compares, json::array then, json::array otherwise) {
    return etcd_.call("/v3/kv/txn", {{"compare", std::move(compares)}, {"success", std::move(then)}, {"failure", std::move(otherwise)}});
  }
  Status read_state(const KeyValue& kv, Snapshot& snapshot);
  void add_news(const Change& change, Known& known, Progress& progress, json::array& then) const;
  Result<bool> save_part(const Change& change, Progress& progress);
  static Known known_from(const KeyValue& kv);

  const std::string prefix_;
  EtcdClient etcd_;

  std::mutex saving_;  // one save at a time
  std::mutex mutex_;   // guards what follows
  Member self_;
  int64_t lease_ = 0;            // 0: no member
  int64_t leader_revision_ = 0;  // of the key that says this member leads; 0: it does not
  std::map<std::string, Known> known_;
  uint64_t marks_ = 0;
};

// ---- reading ----

EtcdStore::Known EtcdStore::known_from(const KeyValue& kv) {
  Known known{.revision = kv.modified};
  boost::system::error_code failure;
  const json::value value = json::parse(kv.value, failure);
  if (failure || !value.is_object()) return known;
  const json::object& object = value.as_object();
  if (const json::value* log = object.if_contains("log"); log != nullptr && log->is_object()) {
    known.entries = int64_of(log->as_object(), "entries");
    if (const json::value* digest = log->as_object().if_contains("digest"); digest != nullptr && digest->is_string())
      known.digest = digest->as_string().c_str();
  }
  if (const json::value* mark = object.if_contains("mark"); mark != nullptr && mark->is_string()) known.mark = mark->as_string().c_str();
  if (const json::value* rollout = object.if_contains("rollout"); rollout != nullptr && rollout->is_object())
    if (const json::value* id = rollout->as_object().if_contains("id"); id != nullptr && id->is_string())
      known.rollout = id->as_string().c_str();
  if (const json::value* list = object.if_contains("verdicts"); list != nullptr && list->is_array())
    for (const json::value& id : list->as_array())
      if (id.is_string()) known.verdicts.emplace_back(id.as_string().c_str());
  return known;
}

Status EtcdStore::read_state(const KeyValue& kv, Snapshot& snapshot) {
  boost::system::error_code failure;
  const json::value value = json::parse(kv.value, failure);
  if (failure) return Error{Code::kCorrupt, kv.key + " is no JSON"};
  SERIN_TRY(ServiceRecord record, service_from_json(value));
  const std::lock_guard lock(mutex_);
  Known& known = known_[record.service];
  if (kv.modified > known.revision) {
    Known seen = known_from(kv);
    if (!known.attempts.contains(seen.mark)) known = std::move(seen);  // one of its own save() must meet: it knows how much was in it
  }
  snapshot.services.push_back({std::move(record), kv.modified});
  return {};
}

Result<Snapshot> EtcdStore::look(bool agreed) {
  const std::string prefix = live("");
  std::string end = prefix;
  ++end.back();
  json::object request{{"key", base64(prefix)}, {"range_end", base64(end)}};
  if (!agreed) request["serializable"] = true;
  SERIN_TRY(const json::object answer, range(request));
  Snapshot snapshot;
  int64_t leads = 0;
  for (const KeyValue& kv : read_range(answer)) {
    const std::string_view name = std::string_view(kv.key).substr(prefix.size());
    if (name == "leader") {
      snapshot.leader = kv.value;
      const std::lock_guard lock(mutex_);
      if (kv.value == self_.id && kv.lease == lease_ && lease_ != 0) leads = kv.created;
      continue;
    }
    if (name.starts_with("state/")) {
      SERIN_CHECK(read_state(kv, snapshot));
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
  const std::lock_guard lock(mutex_);
  if (agreed) leader_revision_ = leads;
  snapshot.leads = agreed && leads != 0;
  return snapshot;
}

Result<std::vector<HistoryEntry>> EtcdStore::history(const std::string& service, size_t limit) {
  SERIN_TRY(const json::object answer, range({{"key", base64(audit_key(service, 0))},
                                              {"range_end", base64(fmt::format("{}/audit/{}0", prefix_, service))},
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
  SERIN_TRY(const json::object answer, range({{"key", base64(verdict_key(id))}}));
  const auto found = read_range(answer);
  if (found.empty()) return std::optional<VerdictEntry>();
  return std::optional(VerdictEntry{.id = id, .json = found.front().value});
}

// ---- being a member ----

Status EtcdStore::join(const Member& self) {
  int64_t lease = 0;
  {
    const std::lock_guard lock(mutex_);
    self_ = self;
    lease = lease_;
  }
  if (lease == 0) {
    SERIN_TRY(const json::object granted, etcd_.call("/v3/lease/grant", {{"TTL", std::to_string(kLeaseSeconds)}}));
    lease = int64_of(granted, "ID");
    if (lease == 0) return Error{Code::kCorrupt, "etcd: granted a lease without an ID"};
    const std::lock_guard lock(mutex_);
    lease_ = lease;
  }
  const std::string key = live("member/" + self.id);
  const json::object write = put(key, json::serialize(to_json(self)), lease);
  const json::object is_ours{{"target", "LEASE"}, {"key", base64(key)}, {"result", "EQUAL"}, {"lease", std::to_string(lease)}};
  for (const json::object& condition : {is_ours, created_is(key, 0)}) {
    const auto answer = transaction({condition}, {write}, {});
    if (answer && succeeded(*answer)) return {};
    if (answer) continue;
    if (answer.error().code == Code::kNotFound) {  // the lease is over
      const std::lock_guard lock(mutex_);
      lease_ = leader_revision_ = 0;
    }
    return answer.error();
  }
  return Error{Code::kAlreadyExists, fmt::format("a router named '{}' is alive, or was until a moment ago", self.id)};
}

Status EtcdStore::stay() {
  int64_t lease = 0;
  {
    const std::lock_guard lock(mutex_);
    lease = lease_;
  }
  if (lease == 0) return Error{Code::kNotFound, "no member"};
  SERIN_TRY(const json::object answer, etcd_.call("/v3/lease/keepalive", {{"ID", std::to_string(lease)}}));
  const json::value* result = answer.if_contains("result");
  if (result != nullptr && result->is_object() && int64_of(result->as_object(), "TTL") > 0) return {};
  const std::lock_guard lock(mutex_);
  lease_ = leader_revision_ = 0;
  return Error{Code::kNotFound, "the lease is over"};
}

void EtcdStore::leave() {
  int64_t lease = 0;
  {
    const std::lock_guard lock(mutex_);
    std::swap(lease, lease_);
    leader_revision_ = 0;
  }
  if (lease != 0) (void)etcd_.call("/v3/lease/revoke", {{"ID", std::to_string(lease)}}).has_value();  // else it ends by itself
}

Result<bool> EtcdStore::lead() {
  std::string id;
  int64_t lease = 0;
  {
    const std::lock_guard lock(mutex_);
    id = self_.id;
    lease = lease_;
  }
  if (lease == 0) return false;
  const std::string key = live("leader");
  SERIN_TRY(const json::object answer, transaction({created_is(key, 0)}, {put(key, id, lease)}, {get(key)}));
  const auto there = read_response(answer, 0);
  const std::lock_guard lock(mutex_);
  if (lease != lease_) return false;
  if (succeeded(answer))
    leader_revision_ = revision_of(answer);
  else if (there && there->value == id && there->lease == lease)
    leader_revision_ = there->created;  // an attempt whose answer did not come
  return leader_revision_ != 0;
}

// ---- writing ----

Status EtcdStore::trip(const Trip& trip) {
  const std::string key = live(fmt::format("trip/{}/{}", trip.service, trip.rollout));
  SERIN_CHECK(transaction({created_is(key, 0)}, {put(key, json::serialize(to_json(trip)))}, {}));
  return {};
}

Result<int64_t> EtcdStore::save(const Change& change) {
  const std::lock_guard saving(saving_);
  Progress progress;
  while (true) {
    SERIN_TRY(const bool written, save_part(change, progress));
    if (written) break;
  }
  const std::lock_guard lock(mutex_);
  return known_[change.record.service].revision;
}

/// Adds to `then` the audit log's next entries and verdicts, as many as fit; `known` and `progress` move on as if it were done.
void EtcdStore::add_news(const Change& change, Known& known, Progress& progress, json::array& then) const {
  const std::string& service = change.record.service;
  const auto from = change.history.begin() + static_cast<std::ptrdiff_t>(progress.entries);
  std::vector<HistoryEntry> log(from,
                                from + static_cast<std::ptrdiff_t>(std::min(kEntriesAtOnce, change.history.size() - progress.entries)));
  chain(log, known.digest);
  for (HistoryEntry& entry : log) {
    entry.id = ++known.entries;
    then.emplace_back(put(audit_key(service, entry.id), json::serialize(to_json(entry))));
  }
  progress.entries += log.size();
  if (!log.empty()) known.digest = log.back().digest;
  if (const int64_t old = known.entries - static_cast<int64_t>(kHistoryLimit); old > 0)
    then.emplace_back(remove_range(audit_key(service, 0), audit_key(service, old + 1)));
  for (size_t room = kVerdictsAtOnce; room > 0 && progress.verdicts < change.verdicts.size(); --room) {
    const VerdictEntry& verdict = change.verdicts[progress.verdicts++];
    then.emplace_back(put(verdict_key(verdict.id), verdict.json));
    std::erase(known.verdicts, verdict.id);
    known.verdicts.push_back(verdict.id);
    if (known.verdicts.size() <= kVerdictLimit) continue;
    then.emplace_back(remove(verdict_key(known.verdicts.front())));
    known.verdicts.erase(known.verdicts.begin());
  }
}

/// One transaction. True: all of the change is written.
Result<bool> EtcdStore::save_part(const Change& change, Progress& progress) {
  const std::string& service = change.record.service;
  const std::string leader_key = live("leader"), key = state_key(service);
  std::unique_lock lock(mutex_);
  Known next = known_[service];
  const int64_t leads = leader_revision_, revision = next.revision;
  const std::string mark = fmt::format("{}-{}", self_.secret, ++marks_);
  if (leads == 0) return Error{Code::kConflict, "this router does not lead"};

  json::array then;
  const std::string rollout = change.record.rollout ? change.record.rollout->report.state.id : "";
  if (std::exchange(next.rollout, rollout) != rollout)  // trips of earlier rollouts
    then.emplace_back(remove_range(live(fmt::format("trip/{}/", service)), live(fmt::format("trip/{}0", service))));
  Progress after = progress;
  add_news(change, next, after, then);
  json::object state = to_json(change.record);
  state["log"] = json::object{{"entries", next.entries}, {"digest", next.digest}};
  state["verdicts"] = json::array(next.verdicts.begin(), next.verdicts.end());
  state["mark"] = mark;
  then.emplace_back(put(key, json::serialize(state)));
  known_[service].attempts[mark] = after;
  lock.unlock();

  SERIN_TRY(const json::object answer,
            transaction({created_is(leader_key, leads), modified_is(key, revision)}, std::move(then), {get(leader_key), get(key)}));
  lock.lock();
  Known& held = known_[service];
  if (succeeded(answer)) {
    next.revision = revision_of(answer);
    next.attempts.clear();
    held = std::move(next);
    progress = after;
    return progress.entries == change.history.size() && progress.verdicts == change.verdicts.size();
  }
  const auto leader = read_response(answer, 0), there = read_response(answer, 1);
  if (!leader || leader->created != leads) {
    leader_revision_ = 0;
    return Error{Code::kConflict, "this router does not lead any more"};
  }
  Known seen = there ? known_from(*there) : Known();
  const auto own = held.attempts.find(seen.mark);
  const bool is_own = own != held.attempts.end();
  if (is_own) progress = own->second;
  held = std::move(seen);
  if (is_own) return false;  // written by an attempt whose answer never came; go on from there
  return Error{Code::kConflict, fmt::format("the state of service '{}' is not what this router saw last", service)};
}

}  // namespace

std::unique_ptr<SharedStore> make_etcd_store(EtcdOptions options, std::string prefix) {
  return std::make_unique<EtcdStore>(std::move(options), std::move(prefix));
}

}  // namespace serin::store
