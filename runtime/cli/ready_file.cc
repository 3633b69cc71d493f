// ready_file.cc: writes the ready file, and waits for signals on one thread instead of interrupting any: no handler, nothing
// async-signal-unsafe.

#include "runtime/cli/ready_file.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace serin::cli {
namespace {

sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

constexpr std::string_view kBeginning = "{\"pid\":";

void remove_where_it_begins(const std::string& path, std::string_view beginning) {
  constexpr size_t kMostBytes = 1024;
  if (path.empty()) return;
  const auto text = read_file(path, kMostBytes);
  if (text && text->starts_with(beginning)) ::unlink(path.c_str());
}

}  // namespace

Status write_ready_file(const std::string& path, const Ports& ports) {
  if (path.empty()) return {};
  std::string text = fmt::format("{}{}", kBeginning, ::getpid());
  const auto append = [&](const char* name, std::optional<uint16_t> port) {
    if (port) text += fmt::format(",\"{}\":{}", name, *port);
  };
  append("http", ports.http);
  append("grpc", ports.grpc);
  append("metrics", ports.metrics);
  append("admin", ports.admin);
  return write_file_atomically(path, text + "}\n");
}

void remove_stale_ready_file(const std::string& path) { remove_where_it_begins(path, kBeginning); }

void remove_own_ready_file(const std::string& path) { remove_where_it_begins(path, fmt::format("{}{},", kBeginning, ::getpid())); }

void block_signal(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void block_end_signals() {
  const sigset_t set = end_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  for (const int stray : {SIGPIPE, SIGUSR1, SIGUSR2}) signal(stray, SIG_IGN);
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void wait_for_end_signal(const std::function<void()>& reload, const std::function<bool()>& look) {
  constexpr timespec kBetweenLooks{.tv_sec = 5, .tv_nsec = 0};
  sigset_t set = end_signals();
  sigaddset(&set, SIGHUP);
  for (;;) {
    const int received = sigtimedwait(&set, nullptr, &kBetweenLooks);
    if (received == SIGHUP)
      reload();
    else if (received > 0 || (errno == EAGAIN && !look()))
      return;
  }
}

bool wait_for_end_signal(double seconds) {
  const sigset_t set = end_signals();
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(seconds);
  timeout.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
  return sigtimedwait(&set, nullptr, &timeout) > 0;
}

bool end_signal_is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

EndsAtOnce::EndsAtOnce(std::function<void()> last)
    : watch_([this, last = std::move(last)] {
        constexpr double kBetweenLooks = 0.01;
        while (!over_)
          if (wait_for_end_signal(kBetweenLooks)) {
            last();
            std::fflush(nullptr);
            std::_Exit(EXIT_SUCCESS);  // what is under way in other threads cannot be waited for
          }
      }) {}

EndsAtOnce::~EndsAtOnce() {
  over_ = true;
  watch_.join();
}

Status configure_log(const std::string& format, const std::string& level) {
  log::Options options;
  if (format == "json")
    options.format = log::Format::kJson;
  else if (format != "text")
    return Error{Code::kInvalidArgument, fmt::format("--log-format {}: must be text or json", format)};
  if (level == "debug")
    options.level = log::Level::kDebug;
  else if (level == "warning")
    options.level = log::Level::kWarning;
  else if (level == "error")
    options.level = log::Level::kError;
  else if (level == "off")
    options.level = log::Level::kOff;
  else if (level != "info")
    return Error{Code::kInvalidArgument, fmt::format("--log-level {}: must be debug, info, warning, error or off", level)};
  log::configure(options);
  return {};
}

}  // namespace serin::cli
