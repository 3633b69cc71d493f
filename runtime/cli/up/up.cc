// up.cc: `serin up`: a router, and two runtimes for each model of a folder; a version folder that appears is released.
//
// Everything is a process of its own: a model that crashes its runtime ends no other. What is to be known over restarts is in one folder: the
// registry, the router's store, and which versions were seen. Releases are `serin release`, so they go on where they were, too.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "runtime/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/registry/provenance.h"
#include "runtime/cli/release/candidate.h"
#include "runtime/cli/release/child.h"
#include "runtime/cli/up/model_folders.h"
#include "runtime/cli/up/releases.h"
#include "runtime/cli/up/supervised.h"
#include "runtime/cli/validators.h"
#include "runtime/net/http.h"
#include "runtime/registry/folder_lock.h"
#include "runtime/registry/registry.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr const char* kSlots[] = {"blue", "green"};
constexpr double kLook = 0.1;
constexpr std::chrono::minutes kReadyTime{2};

struct UpOptions {
  std::string models, state, listen = "127.0.0.1:8080", admin = "127.0.0.1:8081", ready_file;
  double poll_seconds = 1;
};

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// A model that is served: two runtimes, and its release if there is one.
struct Served {
  std::unique_ptr<Supervised> runtimes[2];
  Supervised::Ports ports[2];
};

class Up {
 public:
  explicit Up(const UpOptions& options)
      : options_(options),
        state_(options.state.empty() ? options.models + "/.serin" : options.state),
        folders_(options.models, state_ + "/seen.json"),
        registry_(state_ + "/registry") {}

  Status start();
  /// Until a signal comes.
  Status run();
  void end();

 private:
  Status add_model(const std::string& model, const ModelFolders::Versions& versions);
  Status register_first(const std::string& model, const ModelFolders::Versions& versions);
  Status start_runtime(const std::string& model, size_t slot);
  Result<Supervised::Ports> wait_for(Supervised& process);
  Status write_router_yaml() const;
  Status start_router();
  Status look_at_models();
  std::string policy_file(const std::string& model) const { return fmt::format("{}/{}/release.yaml", options_.models, model); }
  std::vector<std::string> release_arguments(const std::string& model, uint64_t version) const;

  const UpOptions& options_;
  std::string state_;
  ModelFolders folders_;
  registry::Registry registry_;
  std::optional<registry::FolderLock> lock_;
  std::map<std::string, Served> served_;
  std::unique_ptr<Supervised> router_;
  Supervised::Ports router_ports_;
  std::unique_ptr<Releases> releases_;
  std::map<std::string, std::string> refused_;  // models that could not be added, and why
};

/// The version that is served when the model is seen for the first time: the highest one. It is not compared with anything.
Status Up::register_first(const std::string& model, const ModelFolders::Versions& versions) {
  const auto there = registry_.find({model, "production"});
  if (there) return {};
  if (there.error().code != Code::kNotFound) return there.error();
  const uint64_t highest = versions.rbegin()->first;
  SERIN_TRY(const Candidate candidate, find_candidate(folders_.path(model, highest)));
  registry::Addition addition = candidate.files;
  SERIN_TRY(addition.details, details_of(candidate.place.file));
  SERIN_TRY(const registry::Added added, registry_.add(model, addition, user_and_host()));
  for (const char* tag : {kSlots[0], kSlots[1], "production"})
    SERIN_CHECK(registry_.tag({model, added.version.digest}, tag, user_and_host()));
  return folders_.saw(model, versions);
}

Status Up::start_runtime(const std::string& model, size_t slot) {
  Served& served = served_[model];
  auto& process = served.runtimes[slot];
  process = std::make_unique<Supervised>(
      fmt::format("{}-{}", model, kSlots[slot]), state_ + "/logs",
      std::vector<std::string>{"serve", fmt::format("registry://{}/registry/{}:{}", state_, model, kSlots[slot]), "--registry-cache",
                               state_ + "/cache", "--port", "0", "--grpc-port", "0", "--metrics-port", "off", "--drain-seconds", "0"});
  return process->start();
}

Result<Supervised::Ports> Up::wait_for(Supervised& process) {
  if (const auto ports = process.wait_ready(kReadyTime)) return *ports;
  if (process.running())
    return Error{Code::kDeadlineExceeded, fmt::format("{} is not ready after two minutes; its log is {}", process.name(), process.log())};
  return Error{Code::kUnavailable, fmt::format("{} did not become ready; its log is {}", process.name(), process.log())};
}

Status Up::add_model(const std::string& model, const ModelFolders::Versions& versions) {
  SERIN_CHECK(register_first(model, versions));
  for (size_t slot = 0; slot < std::size(kSlots); ++slot) SERIN_CHECK(start_runtime(model, slot));
  Served& served = served_[model];
  for (size_t slot = 0; slot < std::size(kSlots); ++slot) {
    Supervised& process = *served.runtimes[slot];
    SERIN_TRY(served.ports[slot], wait_for(process));
    // From now on it keeps them, as router.yaml has them.
    std::vector<std::string>& arguments = process.arguments();
    *(std::ranges::find(arguments, "--port") + 1) = std::to_string(served.ports[slot].http);
    *(std::ranges::find(arguments, "--grpc-port") + 1) = std::to_string(served.ports[slot].grpc);
  }
  return {};
}

Status Up::write_router_yaml() const {
  std::string text = fmt::format("listen: {}\nadmin: {}\nstore: {}\nservices:\n", net::json_quote(options_.listen),
                                 net::json_quote(options_.admin), net::json_quote(state_ + "/router.db"));
  for (const auto& [model, served] : served_) {
    text += fmt::format("  - name: {}\n    initial_stable: {}\n    versions:\n", net::json_quote(model), kSlots[0]);
    for (size_t slot = 0; slot < std::size(kSlots); ++slot)
      text += fmt::format("      - {{name: {}, endpoints: [{{url: \"http://127.0.0.1:{}/v2/models/{}\", grpc_port: {}}}]}}\n", kSlots[slot],
                          served.ports[slot].http, model, served.ports[slot].grpc);
  }
  return write_file_atomically(state_ + "/router.yaml", text);
}

Status Up::start_router() {
  SERIN_CHECK(write_router_yaml());
  router_ = std::make_unique<Supervised>("router", state_ + "/logs",
                                         std::vector<std::string>{"route", "--config", state_ + "/router.yaml", "--drain-seconds", "0"});
  SERIN_CHECK(router_->start());
  SERIN_TRY(router_ports_, wait_for(*router_));
  return {};
}

Status Up::start() {
  std::error_code error;
  if (!fs::is_directory(options_.models, error)) return Error{Code::kNotFound, fmt::format("there is no folder '{}'", options_.models)};
  fs::create_directories(state_ + "/logs", error);
  if (!error) fs::create_directories(state_ + "/registry", error);
  if (error) return Error{Code::kPermissionDenied, fmt::format("{}: {}", state_, error.message())};
  auto lock = registry::FolderLock::acquire(state_, registry::FolderLock::Mode::kExclusive, 0);
  if (!lock) return lock.error().in("another serin up works with this folder");
  lock_.emplace(*std::move(lock));
  SERIN_CHECK(folders_.remember());
  SERIN_TRY(const auto models, folders_.list());
  if (models.empty()) return Error{Code::kNotFound, fmt::format("{} has no folders such as NAME/1/model.onnx", options_.models)};
  for (const auto& [model, versions] : models)
    if (const Status added = add_model(model, versions); !added) return added.error().in(fmt::format("model '{}'", model));
  SERIN_CHECK(start_router());
  releases_ = std::make_unique<Releases>(state_ + "/logs");
  SERIN_CHECK(write_ready_file(options_.ready_file, {.http = router_ports_.http, .admin = router_ports_.admin}));
  for (const auto& [model, versions] : models) {
    SERIN_TRY(const registry::Version production, registry_.find({model, "production"}));
    say(fmt::format("{}:{} is in production; a new folder in {}/{} is released", model, production.number, options_.models, model));
  }
  say(fmt::format("clients: http://127.0.0.1:{}/v2/models/NAME/infer   dashboard: http://127.0.0.1:{}/   logs: {}/logs", router_ports_.http,
                  router_ports_.admin, state_));
  return {};
}

std::vector<std::string> Up::release_arguments(const std::string& model, uint64_t version) const {
  std::vector<std::string> arguments = {
      "release",    folders_.path(model, version), "--service", model,
      "--registry", state_ + "/registry",          "--admin",   fmt::format("127.0.0.1:{}", router_ports_.admin)};
  const Served& served = served_.at(model);
  for (size_t slot = 0; slot < std::size(kSlots); ++slot)
    arguments.insert(arguments.end(), {"--slot", fmt::format("{}=http://127.0.0.1:{}", kSlots[slot], served.ports[slot].http)});
  std::error_code absent;
  if (fs::exists(policy_file(model), absent)) arguments.insert(arguments.end(), {"--policy", policy_file(model)});
  return arguments;
}

Status Up::look_at_models() {
  SERIN_TRY(const auto models, folders_.list());
  for (const auto& [model, versions] : models) {
    if (!served_.contains(model)) {
      const std::string stamp = versions.rbegin()->second;
      if (refused_[model] == stamp || !folders_.fresh(model, versions)) continue;  // still being written, or known to be bad
      Status added = add_model(model, versions);
      if (added) {
        SERIN_CHECK(write_router_yaml());
        router_->signal(SIGHUP);
        say(fmt::format("{}: a new model is served", model));
      } else {
        served_.erase(model);
        refused_[model] = stamp;
        say(fmt::format("{}: cannot be served: {}", model, added.error().message));
      }
      continue;
    }
    const auto fresh = folders_.fresh(model, versions);
    if (!fresh || releases_->busy(model)) continue;
    SERIN_CHECK(releases_->begin(model, versions, policy_file(model), release_arguments(model, *fresh)));
    say(fmt::format("{}: version folder {} is new", model, *fresh));
  }
  for (const Releases::Ended& ended : releases_->look(say))
    if (ended.decided) SERIN_CHECK(folders_.saw(ended.model, ended.versions));
  return {};
}

Status Up::run() {
  auto looked = steady_clock::now();
  const std::chrono::duration<double> poll(options_.poll_seconds);
  while (!wait_for_end_signal(kLook)) {
    for (auto& [model, served] : served_)
      for (auto& runtime : served.runtimes)
        if (const auto said = runtime->look()) say(*said);
    if (const auto said = router_->look()) say(*said);
    if (steady_clock::now() - looked < poll) continue;
    looked = steady_clock::now();
    if (const Status status = look_at_models(); !status) say(status.error().message);
  }
  return {};
}

void Up::end() {
  remove_own_ready_file(options_.ready_file);
  releases_.reset();
  if (router_) router_->end();
  served_.clear();
}

int run_up(const UpOptions& options) {
  block_end_signals();
  remove_stale_ready_file(options.ready_file);
  Up up(options);
  int exit_code = kYes;
  try {
    const Status started = up.start();
    const Status done = started ? up.run() : started;
    if (!done) {
      std::fprintf(stderr, "serin up: %s\n", done.error().message.c_str());
      exit_code = done.error().code == Code::kNotFound || done.error().code == Code::kInvalidArgument ? kUsage : kCannotRun;
    }
  } catch (const ReleaseInterrupted&) {
    exit_code = kInterrupted;
  }
  up.end();
  return exit_code;
}

}  // namespace

void add_up(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("up", "Serve a folder of models behind a router on this machine, and release each new version");
  auto options = std::make_shared<UpOptions>();
  command
      ->add_option("models", options->models, "folder with NAME/VERSION/model.onnx, and NAME/release.yaml for what a new version must show")
      ->required();
  command->add_option("--state", options->state,
                      "folder for the registry, the router's store and logs; default: .serin in the folder of models");
  command->add_option("--listen", options->listen, "ADDRESS:PORT for clients; port 0 picks a free one")->capture_default_str();
  command->add_option("--admin", options->admin, "ADDRESS:PORT of the admin API and the dashboard")->capture_default_str();
  command->add_option("--poll-seconds", options->poll_seconds, "interval at which the folder is checked")
      ->capture_default_str()
      ->check(between(0.05, 3600.0));
  command->add_option("--ready-file", options->ready_file, "file for pid and ports, written when everything is ready");
  command->callback([options, &exit_code] { exit_code = run_up(*options); });
}

}  // namespace serin::cli
