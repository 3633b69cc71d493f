// release_record.cc: the last stage: what led to the outcome becomes one line of the records, and a report of the version.

#include <fmt/format.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/version.h"
#include "runtime/cli/release/release_notify.h"
#include "runtime/cli/release/release_run.h"
#include "runtime/registry/history.h"
#include "runtime/registry/sha256.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

json::object version_json(const std::string& model, const registry::Version& version) {
  json::array files;
  for (const registry::StoredFile& file : version.files)
    files.push_back({{"path", file.path}, {"digest", file.digest}, {"bytes", file.bytes}});
  json::object origin;
  for (const auto& [key, value] : version.origin) origin[key] = value;
  return {{"name", model},
          {"version", version.number},
          {"content", version.content},
          {"manifest", version.digest},
          {"files", std::move(files)},
          {"origin", std::move(origin)}};
}

}  // namespace

Result<json::object> ReleaseRun::predicate() {
  json::object all{{"id", journal_.id},
                   {"service", journal_.service},
                   {"started", journal_.started},
                   {"ended", registry::time_now()},
                   {"by", journal_.by},
                   {"serin", std::string(kVersion)},
                   {"given", journal_.given},
                   {"again", journal_.again},
                   {"outcome", journal_.stop ? journal_.stop->outcome : "promoted"},
                   {"stage", journal_.stop ? journal_.stop->stage : "tag"},
                   {"reason", journal_.stop ? journal_.stop->reason : ""},
                   {"policy", policy_.text},
                   {"policy_file", journal_.facts.at("policy_file")},
                   {"policy_sha256", registry::digest_of(policy_.text)},
                   {"timeline", journal_.timeline}};
  json::object model{{"name", journal_.model}, {"content", journal_.content}};
  if (journal_.version > 0) {
    SERIN_TRY(const registry::Version version, registry_.find({journal_.model, std::to_string(journal_.version)}));
    model = version_json(journal_.model, version);
  }
  all["model"] = std::move(model);
  SERIN_TRY(const registry::Version before, registry_.find({journal_.model, std::to_string(journal_.production)}));
  all["production"] = version_json(journal_.model, before);
  for (const char* fact : {"check", "plan", "evaluation"})
    if (const json::value* found = journal_.facts.if_contains(fact)) all[fact] = *found;
  if (policy_.eval) all["data"] = policy_.data;
  if (!journal_.rollout.empty()) {
    json::object rollout{{"id", journal_.rollout}, {"slot", journal_.slot}, {"revision", journal_.revision}};
    RouterSide::patiently([&] {
      rollout["history"] = router_.history(journal_.rollout);
      const auto verdict = router_.verdict(journal_.rollout);
      rollout["verdict"] = verdict ? json::value(*verdict) : json::value(nullptr);
    });
    all["rollout"] = std::move(rollout);
  }
  if (!journal_.stop)
    all["tag"] = json::object{{"name", policy_.production}, {"before", journal_.production}, {"version", journal_.version}};
  return all;
}

Result<ReleaseRecord> ReleaseRun::record() {
  std::optional<SignatureKey> key;
  if (!options_.key.empty()) {
    SERIN_TRY(key, SignatureKey::read_private(options_.key));
  }
  SERIN_TRY(json::object all, predicate());
  const std::string name = journal_.version > 0 ? fmt::format("{}:{}", journal_.model, journal_.version) : journal_.model;
  json::array subject{json::object{{"name", name}, {"digest", {{"sha256", journal_.content.substr(sizeof("sha256:") - 1)}}}}};
  SERIN_TRY(ReleaseRecord record, ReleaseRecords(folder_).append(std::move(all), std::move(subject), key ? &*key : nullptr));
  std::error_code ignored;
  if (journal_.version > 0) {
    const std::string path = fmt::format("{}/release-{}.json", work(), journal_.id);
    fs::create_directories(work(), ignored);
    SERIN_CHECK(write_file_atomically(path, record.line));
    SERIN_CHECK(registry_.attach({journal_.model, std::to_string(journal_.version)}, path, journal_.by));
  }
  // Before the journal goes: a run that is killed here notifies again, rather than never.
  for (const std::string& fault : notify_of(record, policy_.notify)) timeline_.say("notify", fault);
  fs::remove(folder_ + "/journal.json", ignored);
  fs::remove_all(work(), ignored);
  return record;
}

}  // namespace serin::cli
