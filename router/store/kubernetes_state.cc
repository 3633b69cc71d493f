#include "router/store/kubernetes_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "router/kubernetes/api_client.h"
#include "router/store/history_chain.h"
#include "router/store/record_json.h"

namespace serin::store {

namespace json = boost::json;
using kubernetes::array_at;
using kubernetes::find_at;
using kubernetes::text_at;

namespace {

constexpr size_t kNameLimit = 40, kDigits = 16;

int64_t number_at(const json::object& object, std::initializer_list<std::string_view> path) {
  const json::value* value = find_at(object, path);
  return value != nullptr && value->is_int64() ? value->as_int64() : 0;
}

json::array to_json(std::span<const HistoryEntry> entries) {
  json::array list;
  for (const HistoryEntry& entry : entries) list.emplace_back(to_json(entry));
  return list;
}

}  // namespace

std::string object_name(std::string_view type, std::string_view readable, std::string_view key) {
  return fmt::format("{}.x{}-{}", type, kubernetes::as_name(readable, kNameLimit), sha256(key).substr(0, kDigits));
}

Result<std::vector<HistoryEntry>> read_page(std::string_view data) {
  boost::system::error_code failure;
  const json::value value = json::parse(data, failure);
  if (failure || !value.is_array()) return Error{Code::kCorrupt, "a page of the audit log in the Kubernetes API is not a list"};
  std::vector<HistoryEntry> entries;
  for (const json::value& item : value.as_array()) {
    SERIN_TRY(HistoryEntry entry, entry_from_json(item));
    entries.push_back(std::move(entry));
  }
  return entries;
}

KubernetesState KubernetesState::read(const json::object& data, std::string version) {
  KubernetesState state{
      .version = std::move(version),
      .revision = number_at(data, {"revision"}),
      .entries = number_at(data, {"log", "entries"}),
      .digest = text_at(data, {"log", "digest"}),
      .rollout = text_at(data, {"rollout", "id"}),
      .writer = text_at(data, {"mark", "writer"}),
      .wrote = {static_cast<size_t>(number_at(data, {"mark", "entries"})), static_cast<size_t>(number_at(data, {"mark", "verdicts"}))}};
  for (const json::value& item : array_at(data, {"log", "latest"}))
    if (auto entry = entry_from_json(item)) state.latest.push_back(*std::move(entry));
  for (const json::value& item : array_at(data, {"log", "pages"}))
    if (item.is_string()) state.pages.emplace_back(std::string_view(item.as_string()));
  for (const json::value& item : array_at(data, {"verdicts"}))
    if (item.is_object()) state.verdicts.push_back({text_at(item.as_object(), {"id"}), text_at(item.as_object(), {"object"})});
  return state;
}

void KubernetesState::add_history(const Change& change, const std::string& group, size_t from, std::vector<KubernetesBlob>& before,
                                  std::vector<std::string>& unneeded) {
  std::vector<HistoryEntry> added(change.history.begin() + static_cast<std::ptrdiff_t>(from), change.history.end());
  chain(added, digest);
  for (HistoryEntry& entry : added) entry.id = ++entries;
  if (!added.empty()) digest = added.back().digest;
  std::ranges::move(added, std::back_inserter(latest));
  while (latest.size() >= 2 * kEntriesOfPage) {  // so that the latest page is always here
    const auto end = latest.begin() + kEntriesOfPage;
    const std::string& service = change.record.service;
    KubernetesBlob page{.type = "audit", .service = service, .data = json::serialize(to_json(std::span(latest.begin(), end)))};
    page.name = object_name(page.type, service, fmt::format("{}\n{}\n{}", group, service, page.data));
    pages.push_back(page.name);
    before.push_back(std::move(page));
    latest.erase(latest.begin(), end);
  }
  while (pages.size() > kHistoryLimit / kEntriesOfPage) {
    unneeded.push_back(pages.front());
    pages.erase(pages.begin());
  }
}

void KubernetesState::add_verdicts(const Change& change, const std::string& group, size_t from, std::vector<KubernetesBlob>& before,
                                   std::vector<std::string>& unneeded) {
  const auto replace = [&](auto at) {
    unneeded.push_back(at->object);
    verdicts.erase(at);
  };
  for (; from < change.verdicts.size(); ++from) {
    const VerdictEntry& verdict = change.verdicts[from];
    KubernetesBlob blob{.type = "verdict", .service = change.record.service, .data = verdict.json};
    blob.name = object_name(blob.type, verdict.id, fmt::format("{}\n{}\n{}", group, verdict.id, blob.data));
    if (const auto same = std::ranges::find(verdicts, verdict.id, &Verdict::id); same != verdicts.end()) replace(same);
    if (verdicts.size() >= kVerdictLimit) replace(verdicts.begin());
    verdicts.push_back({verdict.id, blob.name});
    std::erase(unneeded, blob.name);  // the same text again
    before.push_back(std::move(blob));
  }
}

json::object KubernetesState::write(const Change& change, const KubernetesWriter& by, const KubernetesProgress& done,
                                    std::vector<KubernetesBlob>& before, std::vector<std::string>& unneeded) {
  add_history(change, by.group, std::min(done.entries, change.history.size()), before, unneeded);
  add_verdicts(change, by.group, std::min(done.verdicts, change.verdicts.size()), before, unneeded);
  rollout = change.record.rollout ? change.record.rollout->report.state.id : "";
  writer = by.writer;
  wrote = {change.history.size(), change.verdicts.size()};
  json::array references;
  for (const Verdict& verdict : verdicts) references.emplace_back(json::object{{"id", verdict.id}, {"object", verdict.object}});
  json::object data = store::to_json(change.record);
  data["revision"] = ++revision;
  data["log"] = json::object{{"entries", entries},
                             {"digest", digest},
                             {"latest", to_json(std::span<const HistoryEntry>(latest))},
                             {"pages", json::array(pages.begin(), pages.end())}};
  data["verdicts"] = std::move(references);
  data["mark"] = json::object{{"writer", writer}, {"entries", wrote.entries}, {"verdicts", wrote.verdicts}};
  return data;
}

}  // namespace serin::store
