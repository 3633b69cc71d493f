#include "runtime/cli/up/releases.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>

#include "runtime/cli/commands.h"
#include "runtime/cli/release/child.h"

namespace serin::cli {
namespace {

constexpr std::chrono::seconds kTryAgain{10};

}  // namespace

Releases::~Releases() {
  for (const auto& [model, running] : running_)
    if (running.pid > 0) ::kill(running.pid, SIGTERM);
  for (const auto& [model, running] : running_)
    if (running.pid > 0) ::waitpid(running.pid, nullptr, 0);
}

bool Releases::busy(const std::string& model) const {
  const auto found = running_.find(model);
  if (found == running_.end()) return false;
  const Running& running = found->second;
  if (running.asked_wrongly && FileStamp::of(running.policy) == running.policy_stamp) return true;
  return running.pid > 0 || std::chrono::steady_clock::now() < running.again;
}

Status Releases::begin(const std::string& model, const ModelFolders::Versions& versions, const std::string& policy,
                       const std::vector<std::string>& arguments) {
  Running& running = running_[model];
  running = {.pid = 0,
             .versions = versions,
             .log = fmt::format("{}/{}-release.log", logs_, model),
             .policy = policy,
             .policy_stamp = FileStamp::of(policy),
             .asked_wrongly = false,
             .read = 0,
             .again = {}};
  SERIN_TRY(running.pid, start_serin(arguments, running.log, running.log, /*append=*/false, SIGTERM));
  return {};
}

/// Whole lines that were not passed on yet.
void Releases::pass_on(const std::string& model, Running& running, const std::function<void(const std::string&)>& say) {
  std::ifstream file(running.log);
  file.seekg(running.read);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    say(fmt::format("{}: {}", model, line));
    running.read = file.tellg();
  }
}

std::vector<Releases::Ended> Releases::look(const std::function<void(const std::string&)>& say) {
  std::vector<Ended> ended;
  for (auto& [model, running] : running_) {
    if (running.pid == 0) continue;
    int status = 0;
    const bool over = ::waitpid(running.pid, &status, WNOHANG) == running.pid;
    pass_on(model, running, say);
    if (!over) continue;
    running.pid = 0;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kNo;
    const bool decided = code == kYes || code == kRolledBack;
    running.asked_wrongly = code == kUsage;
    if (!decided) running.again = std::chrono::steady_clock::now() + kTryAgain;
    ended.push_back({model, running.versions, decided});
  }
  return ended;
}

}  // namespace serin::cli
