// release.cc: `serin release`: what must be there before a release begins, and what another run has left.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/registry/provenance.h"
#include "runtime/cli/release/child.h"
#include "runtime/cli/release/release_run.h"
#include "runtime/registry/folder_lock.h"
#include "runtime/registry/history.h"
#include "runtime/registry/versions.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// Ends the command with a sentence.
[[noreturn]] void end_with(int exit_code, std::string message) { throw Failure{std::move(message), exit_code}; }

template <class T>
T checked(Result<T> result, int exit_code) {
  if (!result) end_with(exit_code, result.error().message);
  return *std::move(result);
}

/// kUsage for what the caller wrote, kNo for what is in the way.
int code_of(const Error& error) { return error.code == Code::kInvalidArgument || error.code == Code::kNotFound ? kUsage : kNo; }

PolicyFlags flags_of(const ReleaseOptions& options) {
  PolicyFlags flags{.registry = options.registry, .slots = {}};
  for (const std::string& text : options.slots) flags.slots.push_back(checked(parse_slot(text), kUsage));
  if (!flags.slots.empty() && (flags.slots.size() != 2 || flags.slots[0].name == flags.slots[1].name))
    end_with(kUsage, "--slot: give two slots with different names");
  return flags;
}

ReleasePolicy policy_of(const ReleaseOptions& options) {
  ReleasePolicy policy = checked(read_policy(options.policy, flags_of(options)), kUsage);
  if (policy.model.empty()) policy.model = options.service;
  if (!registry::is_name(policy.model))
    end_with(kUsage,
             fmt::format("{}: service '{}' is no name of a model in the registry; give one with 'model'", options.policy, options.service));
  if (!options.data.empty()) policy.data = options.data;
  if (policy.eval && policy.data.empty())
    end_with(kUsage, fmt::format("{}: 'eval' needs data: give 'data' there, or --data", options.policy));
  if (!policy.eval && !options.data.empty()) policy.eval.emplace();  // measured and reported, without a gate
  std::error_code unreadable;
  if (policy.eval && !fs::exists(policy.data, unreadable)) end_with(kUsage, policy.data + ": no such file or folder");
  return policy;
}

/// The policy that a release began with, as the journal has it.
ReleasePolicy policy_of(const Journal& journal, const ReleaseOptions& options) {
  const auto text = [&](const char* key) {
    const json::value* found = journal.facts.if_contains(key);
    return found && found->is_string() ? std::string(found->get_string()) : "";
  };
  ReleasePolicy policy = checked(parse_policy(text("policy"), text("policy_file"), flags_of(options)), kNo);
  if (policy.model.empty()) policy.model = journal.model;
  policy.data = text("data");
  if (!policy.eval && !policy.data.empty() && text("evaluated") == "yes") policy.eval.emplace();
  return policy;
}

std::string short_digest(const std::string& content) { return content.substr(0, sizeof("sha256:") - 1 + 12); }

Journal new_journal(const ReleaseOptions& options, const ReleasePolicy& policy, const Candidate& candidate, const Survey& now) {
  Journal journal{
      .service = options.service, .model = policy.model, .content = candidate.content, .started = registry::time_now(), .by = options.by};
  std::string compact;
  for (const char c : journal.started)
    if (c != '-' && c != ':') compact += c;
  journal.id = fmt::format("{}-{}-{}", options.service, compact, candidate.content.substr(sizeof("sha256:") - 1, 8));
  journal.revision = fmt::format("{}@{}", candidate.content, compact);
  journal.again = options.again;
  journal.given = options.model;
  journal.production = now.production.number;
  journal.production_content = now.production.content;
  json::object origin;
  for (const auto& [key, value] : checked(origin_of(options.origin), kUsage)) origin[key] = value;
  journal.facts = {{"origin", std::move(origin)},
                   {"policy", policy.text},
                   {"policy_file", options.policy.empty() ? "" : fs::absolute(options.policy).string()},
                   {"data", policy.data},
                   {"evaluated", policy.eval ? "yes" : "no"}};
  return journal;
}

/// The latest release of the same contents that had an end.
const ReleaseRecord* last_of(const std::vector<ReleaseRecord>& records, const std::string& content) {
  const auto found = std::ranges::find_if(records.rbegin(), records.rend(), [&](const ReleaseRecord& record) {
    const std::string outcome = record.text("outcome");
    const json::value* model = record.predicate().if_contains("model");
    const json::value* has = model && model->is_object() ? model->get_object().if_contains("content") : nullptr;
    return has && has->is_string() && has->get_string() == content && (outcome == "promoted" || outcome == "rolled_back");
  });
  return found == records.rend() ? nullptr : &*found;
}

/// One object on standard output for --json, else the last line.
int conclude(const ReleaseOptions& options, Timeline& timeline, const json::object& outcome, const std::string& words, int exit_code) {
  if (options.json)
    fmt::print("{}\n", json::serialize(outcome));
  else
    timeline.finish(words);
  return exit_code;
}

int conclude(const ReleaseOptions& options, Timeline& timeline, const ReleaseRecord& record) {
  const std::string outcome = record.text("outcome"), stage = record.text("stage"), reason = record.text("reason");
  const json::object& all = record.predicate();
  const json::value* version = all.at("model").as_object().if_contains("version");
  const auto production = all.at("production").as_object().at("version");
  json::object object{{"schema", "serin.release/1"},
                      {"id", record.text("id")},
                      {"service", record.text("service")},
                      {"outcome", outcome},
                      {"stage", stage},
                      {"reason", reason},
                      {"version", version ? *version : json::value(nullptr)},
                      {"production", outcome == "promoted" ? *version : production},
                      {"record", record.digest}};
  const std::string model(all.at("model").as_object().at("name").as_string());
  const std::string words =
      outcome == "promoted"
          ? fmt::format("promoted: {}:{} is in production; record {}", model, json::serialize(*version), record.digest)
          : fmt::format("{} at {}: {}\nproduction stays {}:{}; record {}", outcome == "rolled_back" ? "rolled back" : "stopped", stage,
                        reason, model, json::serialize(production), record.digest);
  return conclude(options, timeline, object, words, outcome == "promoted" ? kYes : kRolledBack);
}

void dry_run(const ReleasePolicy& policy, const Candidate& candidate, const Journal* journal, const Survey& now, Timeline& timeline) {
  const std::string model = fmt::format("{} ({})", candidate.given, short_digest(candidate.content));
  if (journal != nullptr)
    timeline.title(journal->content == candidate.content
                       ? fmt::format("release {} is unfinished, and would go on", journal->id)
                       : fmt::format("release {} of {} is unfinished, and would be ended first", journal->id, journal->given));
  const std::string production = fmt::format("{}:{}", policy.model, now.production.number);
  const std::string fit =
      policy.memory.empty() && policy.device.empty()
          ? "plan its memory"
          : fmt::format("must fit {}{}{}", policy.memory, policy.memory.empty() || policy.device.empty() ? "" : " on ", policy.device);
  std::string gate = "no evaluation";
  if (policy.eval) {
    gate = fmt::format("evaluate it on {} against {}", policy.data, production);
    for (const std::string& text : policy.eval->require) gate += "; must have " + text;
    if (!policy.eval->no_worse_by.empty()) gate += fmt::format("; must be no worse by more than {}", policy.eval->no_worse_by);
  }
  std::string steps;
  for (const rollout::Step& step : policy.parsed.steps) {
    if (step.is_pause()) continue;
    steps += fmt::format("{}{}{:g} %", steps.empty() ? "" : ", ", step.is_shadow() ? "copies of " : "",
                         (step.weight_ppm + step.shadow_ppm) / 1e4);
  }
  if (policy.parsed.bake.count() > 0) steps += ", bake " + config::print_duration(policy.parsed.bake);
  timeline.title(fmt::format("would release {} as {}; production is {}", model, policy.model, production));
  timeline.title("  check     run it" + std::string(policy.cases.empty() ? " on made-up inputs" : " on the cases of " + policy.cases) +
                 (policy.same_contract ? "; its inputs and outputs must be those of production" : ""));
  timeline.title("  plan      " + fit);
  timeline.title("  eval      " + gate);
  timeline.title(fmt::format("  register  add it to {}", policy.registry));
  timeline.title(fmt::format("  load      give it the tag '{}', and wait at most {} for its runtimes", now.idle,
                             config::print_duration(policy.load_timeout)));
  timeline.title(
      fmt::format("  rollout   '{}' to '{}' by {}, in at most {}", now.stable, now.idle, steps, config::print_duration(policy.timeout)));
  timeline.title(fmt::format("  tag       give it the tag '{}'", policy.production));
  timeline.title("  record    write down how");
}

/// What a process that was killed has left of files that it was about to replace.
void remove_unfinished(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().find(".tmp.") != std::string::npos) fs::remove(entry.path(), ignored);
}

std::optional<Journal> journal_in(const std::string& folder) {
  auto journal = read_journal(folder + "/journal.json");
  if (journal) return *std::move(journal);
  if (journal.error().code != Code::kNotFound) end_with(kNo, journal.error().message);
  return std::nullopt;
}

/// Ends or drops what another run has left, unless it is a release of the same model, which goes on.
void clear(const ReleaseOptions& options, const Candidate& candidate, const ReleasePolicy& policy, const std::string& folder,
           std::optional<Journal>& journal, Timeline& timeline) {
  if (!journal) return;
  const bool seen = journal->stop || journal->stage >= Stage::kLoad;
  const json::value* text = journal->facts.if_contains("policy");
  const bool same_policy = text && text->is_string() && text->get_string() == policy.text;
  if (journal->content == candidate.content && (seen || same_policy)) return;
  if (seen) {
    timeline.title(fmt::format("ending release {} of {}, which was not finished", journal->id, journal->given));
    ReleaseRun old(options, policy_of(*journal, options), folder, *journal, timeline);
    checked(old.finish(fmt::format("superseded by a release of {}", options.model)), kNo);
  }
  journal.reset();
}

int release(const ReleaseOptions& options) {
  Timeline timeline(options.json);
  ReleasePolicy policy = policy_of(options);
  if (!options.key.empty()) checked(SignatureKey::read_private(options.key), kUsage);
  const auto found = find_candidate(options.model);
  if (!found) end_with(code_of(found.error()), found.error().message);
  const Candidate& candidate = *found;
  const RouterSide router(options.admin, options.service);
  const registry::Registry registry(policy.registry);
  const std::string folder = release_folder(policy.registry, options.service);

  std::optional<registry::FolderLock> lock;
  std::error_code error;
  if (!fs::is_directory(policy.registry, error)) end_with(kUsage, fmt::format("there is no registry '{}'", policy.registry));
  if (!options.dry_run) {
    fs::create_directories(folder, error);
    if (error) end_with(kNo, fmt::format("{}: {}", folder, error.message()));
    auto locked = registry::FolderLock::acquire(folder, registry::FolderLock::Mode::kExclusive, 0);
    if (!locked) end_with(kNo, fmt::format("another release of '{}' is under way: {}", options.service, locked.error().message));
    lock.emplace(*std::move(locked));
    remove_unfinished(folder);
  }
  std::optional<Journal> journal = journal_in(folder);
  if (!options.dry_run) clear(options, candidate, policy, folder, journal, timeline);
  const std::vector<ReleaseRecord> records = checked(ReleaseRecords(folder).read(), kNo);
  if (!journal || journal->content != candidate.content) {
    const ReleaseRecord* last = last_of(records, candidate.content);
    if (last && last->text("outcome") == "rolled_back" && !options.again) {
      const std::string words = fmt::format(
          "refused: {} was rolled back at {} by release {}: {}\n--again releases it all the same; a model with other "
          "contents needs no flag",
          short_digest(candidate.content), last->text("stage"), last->text("id"), last->text("reason"));
      return conclude(options, timeline,
                      {{"schema", "serin.release/1"},
                       {"id", last->text("id")},
                       {"service", options.service},
                       {"outcome", "refused"},
                       {"stage", "check"},
                       {"reason", "rolled back before: " + last->text("reason")},
                       {"record", last->digest}},
                      words, kRolledBack);
    }
    const auto now = survey(registry, policy.model, policy, router);
    if (!now) end_with(code_of(now.error()), now.error().message);
    if (now->production.content == candidate.content)
      return conclude(options, timeline,
                      {{"schema", "serin.release/1"},
                       {"service", options.service},
                       {"outcome", "unchanged"},
                       {"version", now->production.number},
                       {"production", now->production.number}},
                      fmt::format("{}:{} has these contents and is in production: nothing to do", policy.model, now->production.number),
                      kYes);
    if (options.dry_run) {
      dry_run(policy, candidate, journal ? &*journal : nullptr, *now, timeline);
      return kYes;
    }
    fs::remove_all(folder + "/work", error);
    journal = new_journal(options, policy, candidate, *now);
    if (const Status written = write_journal(folder + "/journal.json", *journal); !written) end_with(kNo, written.error().message);
    timeline.title(fmt::format("release {} of {} ({})", journal->id, candidate.given, short_digest(candidate.content)));
  } else {
    if (options.dry_run) {
      timeline.title(fmt::format("release {} is unfinished, and would go on where it was", journal->id));
      return kYes;
    }
    timeline.title(fmt::format("release {} of {} goes on", journal->id, candidate.given));
    policy = policy_of(*journal, options);
  }
  ReleaseRun run(options, std::move(policy), folder, *std::move(journal), timeline);
  const auto record = run.run(&candidate);
  if (!record) end_with(code_of(record.error()), record.error().message);
  return conclude(options, timeline, *record);
}

int run_release(const ReleaseOptions& options) {
  block_end_signals();
  try {
    return release(options);
  } catch (const ReleaseInterrupted&) {
    std::fprintf(stderr, "serin release: interrupted; the same command goes on where it was\n");
    return kInterrupted;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "serin release: %s\n", failure.message.c_str());
    return failure.exit_code;
  }
}

}  // namespace

void add_release(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("release", "Judge a model, register it, roll it out and write down how; 0: in production, 3: stopped");
  auto options = std::make_shared<ReleaseOptions>();
  options->by = user_and_host();
  command
      ->add_option("model", options->model, "model file, a model's folder with its versions (the highest one), or the folder of a version")
      ->required();
  command->add_option("--service", options->service, "service in router.yaml")->required();
  command->add_option("--policy", options->policy, "file of kind Release: where everything is, and what the model must show");
  command->add_option("--registry", options->registry, "folder of the registry, if the policy does not name it");
  command
      ->add_option("--slot", options->slots, "NAME=http://HOST:PORT,...: a slot and its runtimes, if the policy has no slots; given twice")
      ->allow_extra_args(false);
  command->add_option("--data", options->data, "data for the evaluation, as serin eval reads them; default: data of the policy");
  command
      ->add_option("--origin", options->origin, "KEY=VALUE to remember with the version, such as commit=4f2c; can be given several times")
      ->allow_extra_args(false);
  command->add_flag("--again", options->again, "release contents that were rolled back before");
  command->add_flag("--dry-run", options->dry_run, "change nothing, and print the stages");
  command->add_option("--sign", options->key, "file with an Ed25519 private key in PEM, which signs the record");
  command->add_option("--by", options->by, "person or program that the record names; default: the user and the machine");
  add_admin_flags(*command, options->admin);
  command->add_flag("--json", options->json, "print one JSON object at the end, and everything else on standard error");
  command->callback([options, &exit_code] { exit_code = run_release(*options); });
}

}  // namespace serin::cli
