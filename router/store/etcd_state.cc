#include "router/store/etcd_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/store/etcd_client.h"
#include "router/store/history_chain.h"
#include "router/store/record_json.h"

namespace serin::store {

namespace json = boost::json;

namespace {

constexpr size_t kEntriesAtOnce = 100, kVerdictsAtOnce = 10;  // a transaction holds 128 operations

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? value->as_string().c_str() : "";
}

}  // namespace

std::string EtcdKeys::live(std::string_view rest) const { return fmt::format("{}/live/{}", prefix, rest); }
std::string EtcdKeys::state(const std::string& service) const { return live("state/" + service); }
std::string EtcdKeys::trip(const std::string& service, const std::string& rollout) const {
  return live(fmt::format("trip/{}/{}", service, rollout));
}
std::string EtcdKeys::audit(const std::string& service, int64_t number) const {
  return fmt::format("{}/audit/{}/{:012}", prefix, service, number);
}
std::string EtcdKeys::verdict(const std::string& id) const { return fmt::format("{}/verdict/{}", prefix, id); }

EtcdState EtcdState::read(const KeyValue& kv) {
  EtcdState state{.revision = kv.modified};
  boost::system::error_code failure;
  const json::value value = json::parse(kv.value, failure);
  if (failure || !value.is_object()) return state;
  const json::object& object = value.as_object();
  if (const json::value* log = object.if_contains("log"); log != nullptr && log->is_object()) {
    state.entries = int64_of(log->as_object(), "entries");
    state.digest = text_at(log->as_object(), "digest");
  }
  if (const json::value* mark = object.if_contains("mark"); mark != nullptr && mark->is_object()) {
    const json::object& made = mark->as_object();
    state.mark = {text_at(made, "writer"),
                  {static_cast<size_t>(int64_of(made, "entries")), static_cast<size_t>(int64_of(made, "verdicts"))}};
  }
  if (const json::value* rollout = object.if_contains("rollout"); rollout != nullptr && rollout->is_object())
    state.rollout = text_at(rollout->as_object(), "id");
  if (const json::value* list = object.if_contains("verdicts"); list != nullptr && list->is_array())
    for (const json::value& id : list->as_array())
      if (id.is_string()) state.verdicts.emplace_back(id.as_string().c_str());
  return state;
}

json::array EtcdState::write(const Change& change, const EtcdKeys& keys, const std::string& writer, EtcdProgress& progress) {
  const std::string& service = change.record.service;
  json::array then;
  const std::string id = change.record.rollout ? change.record.rollout->report.state.id : "";
  if (std::exchange(rollout, id) != id) {  // trips of earlier rollouts
    const std::string all = keys.trip(service, "");
    then.emplace_back(remove_range(all, after_prefix(all)));
  }
  write_news(change, keys, progress, then);
  json::object written = to_json(change.record);
  written["log"] = json::object{{"entries", entries}, {"digest", digest}};
  written["verdicts"] = json::array(verdicts.begin(), verdicts.end());
  mark = {writer, progress};
  written["mark"] = json::object{{"writer", writer}, {"entries", progress.entries}, {"verdicts", progress.verdicts}};
  then.emplace_back(put(keys.state(service), json::serialize(written)));
  return then;
}

/// The audit log's next entries and verdicts; the oldest go.
void EtcdState::write_news(const Change& change, const EtcdKeys& keys, EtcdProgress& progress, json::array& then) {
  const std::string& service = change.record.service;
  const auto from = change.history.begin() + static_cast<std::ptrdiff_t>(progress.entries);
  std::vector<HistoryEntry> log(from,
                                from + static_cast<std::ptrdiff_t>(std::min(kEntriesAtOnce, change.history.size() - progress.entries)));
  chain(log, digest);
  for (HistoryEntry& entry : log) {
    entry.id = ++entries;
    then.emplace_back(put(keys.audit(service, entry.id), json::serialize(to_json(entry))));
  }
  progress.entries += log.size();
  if (!log.empty()) digest = log.back().digest;
  if (const int64_t old = entries - static_cast<int64_t>(kHistoryLimit); old > 0)
    then.emplace_back(remove_range(keys.audit(service, 0), keys.audit(service, old + 1)));
  for (size_t room = kVerdictsAtOnce; room > 0 && progress.verdicts < change.verdicts.size(); --room) {
    const VerdictEntry& verdict = change.verdicts[progress.verdicts++];
    then.emplace_back(put(keys.verdict(verdict.id), verdict.json));
    std::erase(verdicts, verdict.id);
    verdicts.push_back(verdict.id);
    if (verdicts.size() <= kVerdictLimit) continue;
    then.emplace_back(remove(keys.verdict(verdicts.front())));
    verdicts.erase(verdicts.begin());
  }
}

}  // namespace serin::store
