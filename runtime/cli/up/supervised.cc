#include "runtime/cli/up/supervised.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>
#include <filesystem>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/release/child.h"

namespace serin::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kLongestPause{30}, kLongestEnd{40};
constexpr size_t kLargestReady = 4096;
constexpr double kBetweenLooks = 0.05;  // seconds

}  // namespace

Supervised::Supervised(std::string name, std::string folder, std::vector<std::string> arguments)
    : name_(std::move(name)),
      log_(fmt::format("{}/{}.log", folder, name_)),
      ready_(fmt::format("{}/{}.ready", folder, name_)),
      arguments_(std::move(arguments)) {}

Supervised::~Supervised() { end(); }

Status Supervised::start() {
  std::error_code ignored;
  std::filesystem::remove(ready_, ignored);
  std::vector<std::string> arguments = arguments_;
  arguments.insert(arguments.end(), {"--ready-file", ready_});
  SERIN_TRY(pid_, start_serin(arguments, log_, log_, /*append=*/true, SIGTERM));
  started_ = steady_clock::now();
  again_ = steady_clock::time_point::max();
  return {};
}

std::optional<Supervised::Ports> Supervised::ports() const {
  const auto text = read_file(ready_, kLargestReady);
  boost::system::error_code error;
  const boost::json::value value = text ? boost::json::parse(*text, error) : boost::json::value();
  if (pid_ <= 0 || error || !value.is_object()) return std::nullopt;
  const auto port = [&](std::string_view key) {
    const boost::json::value* found = value.get_object().if_contains(key);
    return found && found->is_number() ? found->to_number<uint16_t>() : uint16_t{0};
  };
  return Ports{port("http"), port("grpc"), port("admin")};
}

std::optional<Supervised::Ports> Supervised::wait_ready(std::chrono::seconds limit) {
  const auto deadline = steady_clock::now() + limit;
  while (true) {
    if (const auto found = ports()) return found;
    if (look() || steady_clock::now() > deadline) return std::nullopt;
    if (wait_for_end_signal(kBetweenLooks)) throw ReleaseInterrupted{};
  }
}

bool Supervised::reaped(int& status) { return pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_; }

std::optional<std::string> Supervised::look() {
  int status = 0;
  if (reaped(status)) {
    pid_ = 0;
    if (steady_clock::now() - started_ > kLongestPause) pause_ = std::chrono::seconds(1);
    again_ = steady_clock::now() + pause_;
    const std::string how = WIFSIGNALED(status)
                                ? fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                                : fmt::format("ended with {}", WEXITSTATUS(status));
    std::string text = fmt::format("{} {}; it starts again in {} s (log: {})", name_, how, pause_.count(), log_);
    pause_ = std::min(2 * pause_, kLongestPause);
    return text;
  }
  if (pid_ == 0 && steady_clock::now() >= again_)
    if (const Status started = start(); !started) return started.error().message;
  return std::nullopt;
}

void Supervised::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void Supervised::end() {
  if (pid_ <= 0) return;
  signal(SIGTERM);
  const auto deadline = steady_clock::now() + kLongestEnd;
  int status = 0;
  while (!reaped(status)) {
    if (steady_clock::now() > deadline) signal(SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  pid_ = 0;
  again_ = steady_clock::time_point::max();
}

}  // namespace serin::cli
