// history.cc: `serin history`: the records of releases, read, verified, and judged again.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "runtime/base/file.h"
#include "runtime/base/json_at.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/release/child.h"
#include "runtime/cli/release/judging.h"
#include "runtime/cli/release/records.h"
#include "runtime/registry/registry.h"
#include "runtime/registry/sha256.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

struct HistoryOptions {
  std::string registry, service, id, key, noted, data, model;
  bool json = false;
};

/// kNo for records that were changed, kUsage for what does not exist.
int report_history(const char* action, const Error& error) {
  std::fprintf(stderr, "serin history %s: %s\n", action, error.message.c_str());
  return error.code == Code::kCorrupt ? kNo : error.code == Code::kInvalidArgument || error.code == Code::kNotFound ? kUsage : kCannotRun;
}

std::string text_in(const json::value* value) { return value && value->is_string() ? std::string(value->get_string()) : ""; }

const json::value* part(const ReleaseRecord& record, std::string_view path) {
  const json::value* predicate = record.statement.if_contains("predicate");
  return predicate ? json_at::find(*predicate, path) : nullptr;
}

/// "digits:2", or "digits" for a model that was not registered.
std::string model_name(const ReleaseRecord& record, std::string_view member) {
  const json::value* version = part(record, fmt::format("/{}/version", member));
  const std::string name = text_in(part(record, fmt::format("/{}/name", member)));
  return version ? fmt::format("{}:{}", name, json::serialize(*version)) : name;
}

/// Of one service, or of all.
Result<std::vector<ReleaseRecord>> records_of(const HistoryOptions& options) {
  std::error_code error;
  if (!fs::is_directory(options.registry, error))
    return Error{Code::kNotFound, fmt::format("{}: there is no such registry", options.registry)};
  SERIN_TRY(const std::vector<std::string> services, released_services(options.registry));
  std::vector<ReleaseRecord> all;
  for (const std::string& service : services) {
    if (!options.service.empty() &&
        release_folder(options.registry, options.service) != fmt::format("{}/.releases/{}", options.registry, service))
      continue;
    SERIN_TRY(std::vector<ReleaseRecord> more, ReleaseRecords(fmt::format("{}/.releases/{}", options.registry, service)).read());
    std::ranges::move(more, std::back_inserter(all));
  }
  if (all.empty() && !options.service.empty())
    return Error{Code::kNotFound, fmt::format("{} has no record of a release of '{}'", options.registry, options.service)};
  return all;
}

Result<ReleaseRecord> record_of(const HistoryOptions& options) {
  SERIN_TRY(const std::vector<ReleaseRecord> all, records_of(options));
  for (const ReleaseRecord& record : all)
    if (record.text("id") == options.id || record.digest == options.id) return record;
  return Error{Code::kNotFound,
               fmt::format("{} has no record '{}'; serin history list {} names them", options.registry, options.id, options.registry)};
}

int list(const HistoryOptions& options) {
  const auto all = records_of(options);
  if (!all) return report_history("list", all.error());
  json::array lines;
  for (const ReleaseRecord& record : *all) {
    if (options.json)
      lines.push_back({{"id", record.text("id")},
                       {"service", record.text("service")},
                       {"ended", record.text("ended")},
                       {"model", model_name(record, "model")},
                       {"outcome", record.text("outcome")},
                       {"stage", record.text("stage")},
                       {"reason", record.text("reason")},
                       {"signed", !record.keys.empty()},
                       {"digest", record.digest}});
    else
      fmt::print("{}  {:<12} {:<9} {:<12} {}  {}{}\n", record.text("ended"), record.text("outcome"), record.text("stage"),
                 model_name(record, "model"), record.text("id"), record.keys.empty() ? "" : "signed  ", record.text("reason"));
  }
  if (options.json) fmt::print("{}\n", json::serialize(lines));
  return kYes;
}

int show(const HistoryOptions& options) {
  const auto found = record_of(options);
  if (!found) return report_history("show", found.error());
  const ReleaseRecord& record = *found;
  if (options.json) {
    fmt::print("{}\n", json::serialize(record.statement));
    return kYes;
  }
  fmt::print("{}: {} at {}\n", record.text("id"), record.text("outcome"), record.text("stage"));
  if (const std::string reason = record.text("reason"); !reason.empty()) fmt::print("reason     {}\n", reason);
  fmt::print("from, to   {} to {} by {}\n", record.text("started"), record.text("ended"), record.text("by"));
  fmt::print("model      {} {}\n", model_name(record, "model"), text_in(part(record, "/model/content")));
  fmt::print("compared   {} {}\n", model_name(record, "production"), text_in(part(record, "/production/content")));
  fmt::print("policy     {}\n", record.text("policy_sha256"));
  if (const json::value* evaluation = part(record, "/evaluation")) {
    const std::string report = text_in(part(record, "/evaluation/report"));
    boost::system::error_code error;
    const json::value parsed = json::parse(report, error);
    const json::value* data = error ? nullptr : parsed.find_pointer("/data/sha256", error);
    fmt::print("data       {} sha256:{}\nevaluation {} {}\n", record.text("data"), text_in(data),
               text_in(evaluation->as_object().if_contains("sha256")), eval_text(report));
  }
  if (const std::string rollout = text_in(part(record, "/rollout/id")); !rollout.empty()) fmt::print("rollout    {}\n", rollout);
  if (const json::value* timeline = part(record, "/timeline"); timeline && timeline->is_array())
    for (const json::value& each : timeline->get_array())
      if (const json::object* event = each.if_object())
        fmt::print("  {}  {:<9} {}\n", text_in(event->if_contains("at")), text_in(event->if_contains("stage")),
                   text_in(event->if_contains("text")));
  fmt::print("digest     {}\nsigned by  {}\n", record.digest, record.keys.empty() ? "nobody" : record.keys.front());
  return kYes;
}

/// What is wrong with one record, apart from the chain.
std::optional<std::string> fault_of(const ReleaseRecord& record, const SignatureKey* key) {
  if (key != nullptr && !is_signed_by(record, *key)) return "is not signed by that key";
  const json::value* evaluation = part(record, "/evaluation/report");
  if (evaluation && registry::digest_of(text_in(evaluation)) != text_in(part(record, "/evaluation/sha256")))
    return "has another evaluation than its digest says";
  if (registry::digest_of(record.text("policy")) != record.text("policy_sha256")) return "has another policy than its digest says";
  return std::nullopt;
}

int verify(const HistoryOptions& options) {
  std::optional<SignatureKey> key;
  if (!options.key.empty()) {
    auto read = SignatureKey::read_public(options.key);
    if (!read) {
      report_history("verify", read.error());
      return kUsage;
    }
    key.emplace(*std::move(read));
  }
  const auto all = records_of(options);
  if (!all) return report_history("verify", all.error());
  for (const ReleaseRecord& record : *all)
    if (const auto fault = fault_of(record, key ? &*key : nullptr)) {
      std::fprintf(stderr, "%s %s\n", record.text("id").c_str(), fault->c_str());
      return kNo;
    }
  if (!options.noted.empty() && std::ranges::find(*all, options.noted, &ReleaseRecord::digest) == all->end()) {
    std::fprintf(stderr, "no record has the digest %s: it was removed, or written anew\n", options.noted.c_str());
    return kNo;
  }
  fmt::print("{} records, none changed, none missing between them{}{}\n", all->size(), key ? "; all signed by this key" : "",
             all->empty() ? "" : "; the last one's digest, to note elsewhere: " + all->back().digest);
  return kYes;
}

bool is_timed(const json::value& requirement) {
  const json::value* text = requirement.is_object() ? requirement.get_object().if_contains("text") : nullptr;
  return text && text->is_string() && text->get_string().starts_with("latency_");
}

/// Each place where two reports differ. Times differ always. Places of files are no difference, and the models are compared by their contents.
void differences(const json::value& recorded, const json::value& now, const std::string& path, std::vector<std::string>& found) {
  if (recorded.is_object() && now.is_object() && !is_timed(recorded)) {
    for (const auto& [key, value] : recorded.get_object()) {
      if (key == "path" || key == "place" || key == "latency" || (path.empty() && (key == "model" || key == "against"))) continue;
      const json::value* other = now.get_object().if_contains(key);
      differences(value, other ? *other : json::value(nullptr), fmt::format("{}/{}", path, std::string_view(key)), found);
    }
    return;
  }
  if (recorded.is_array() && now.is_array() && recorded.get_array().size() == now.get_array().size()) {
    for (size_t i = 0; i < recorded.get_array().size(); ++i)
      differences(recorded.get_array()[i], now.get_array()[i], fmt::format("{}/{}", path, i), found);
    return;
  }
  if (is_timed(recorded)) return;
  if (recorded != now) found.push_back(fmt::format("{}: recorded {}, now {}", path, json::serialize(recorded), json::serialize(now)));
}

/// A folder of its own, gone afterwards.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / fmt::format("serin-reproduce-{}", ::getpid())) { fs::create_directories(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path(std::string_view name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

/// The files of a version that a record names, by the digest of its manifest.
Result<std::string> pull_member(const registry::Registry& registry, const ReleaseRecord& record, const std::string& member,
                                const Scratch& scratch) {
  const std::string manifest = text_in(part(record, fmt::format("/{}/manifest", member)));
  if (manifest.empty())
    return Error{Code::kFailedPrecondition, "the model was stopped before it was registered: name its files with --model"};
  SERIN_TRY(const registry::Pulled pulled,
            registry.pull({text_in(part(record, fmt::format("/{}/name", member))), manifest}, scratch.path(member)));
  return pulled.folder;
}

Result<int> judge_again(const HistoryOptions& options, const ReleaseRecord& record) {
  const std::string recorded = text_in(part(record, "/evaluation/report"));
  if (recorded.empty()) return Error{Code::kFailedPrecondition, fmt::format("{} has no evaluation", record.text("id"))};
  SERIN_TRY(ReleasePolicy policy,
            parse_policy(record.text("policy"), record.text("policy_file"), {.registry = {}, .slots = {}, .partial = true}));
  if (!policy.eval) policy.eval.emplace();
  const Scratch scratch;
  const registry::Registry registry(options.registry);
  std::string model = options.model;
  if (model.empty()) {
    SERIN_TRY(model, pull_member(registry, record, "model", scratch));
  } else {
    SERIN_TRY(const Candidate candidate, find_candidate(model));
    if (candidate.content != text_in(part(record, "/model/content")))
      return invalid(fmt::format("--model {}: its contents are {}, and the record has {}", model, candidate.content,
                                 text_in(part(record, "/model/content"))));
  }
  SERIN_TRY(const std::string against, pull_member(registry, record, "production", scratch));
  const std::string data = options.data.empty() ? record.text("data") : options.data;
  SERIN_TRY(const Judged judged, judge_eval(*policy.eval, model, data, against, scratch.path("work")));
  if (!judged.facts.contains("report")) return Error{Code::kIo, judged.text};
  boost::system::error_code error;
  const json::value before = json::parse(recorded, error), now = json::parse(std::string(judged.facts.at("report").as_string()), error);
  std::vector<std::string> found;
  differences(before, now, "", found);
  if (found.empty()) {
    fmt::print("{}: the evaluation gives the same to the last digit: {}\n", record.text("id"), judged.text);
    return int{kYes};
  }
  constexpr size_t kMostShown = 10;
  for (size_t i = 0; i < std::min(kMostShown, found.size()); ++i) std::fprintf(stderr, "%s\n", found[i].c_str());
  std::fprintf(stderr, "%s: the evaluation gives other numbers in %zu places\n", record.text("id").c_str(), found.size());
  return int{kNo};
}

int reproduce(const HistoryOptions& options) {
  block_end_signals();
  const auto record = record_of(options);
  if (!record) return report_history("reproduce", record.error());
  try {
    const auto done = judge_again(options, *record);
    return done ? *done : report_history("reproduce", done.error());
  } catch (const ReleaseInterrupted&) {
    return kInterrupted;
  }
}

}  // namespace

void add_history(CLI::App& app, int& exit_code) {
  auto* group = app.add_subcommand("history", "Show, verify and reproduce the records of releases");
  group->require_subcommand(1);
  const auto action = [&](const char* name, const char* help, int (*run)(const HistoryOptions&)) {
    auto* command = group->add_subcommand(name, help);
    auto options = std::make_shared<HistoryOptions>();
    command->add_option("registry", options->registry, "folder of the registry")->required();
    command->callback([options, run, &exit_code] { exit_code = run(*options); });
    return std::pair(command, options.get());
  };
  const auto [listing, listed] = action("list", "Print a line for each release", list);
  listing->add_option("service", listed->service, "only those of this service");
  listing->add_flag("--json", listed->json, "print one JSON document");

  const auto [showing, shown] = action("show", "Print one release: model, data, evaluation, rollout, timeline", show);
  showing->add_option("id", shown->id, "of the release, or the digest of its record")->required();
  showing->add_flag("--json", shown->json, "print the whole statement");

  const auto [verifying, verified] =
      action("verify", "Compute all digests again, and check signatures; exit code 1 if something differs", verify);
  verifying->add_option("service", verified->service, "only those of this service");
  verifying->add_option("--public-key", verified->key, "file with an Ed25519 public key in PEM, with which each record must be signed");
  verifying->add_option("--noted", verified->noted, "a digest that was noted earlier and must still exist");

  const auto [judging, judged] =
      action("reproduce", "Evaluate the model of a release again and compare with what was recorded; exit code 1 if it differs", reproduce);
  judging->add_option("id", judged->id, "of the release, or the digest of its record")->required();
  judging->add_option("--data", judged->data, "the data, if they are not where they were");
  judging->add_option("--model", judged->model, "files of the model, if it was stopped before it was registered");
}

}  // namespace serin::cli
