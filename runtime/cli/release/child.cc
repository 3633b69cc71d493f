#include "runtime/cli/release/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/cli/ready_file.h"

namespace serin::cli {
namespace {

constexpr size_t kMostOutput = 16 << 20;
constexpr int kNotStarted = 127;
constexpr double kBetweenLooks = 0.02;

/// Becomes the command. Only calls that are allowed after fork().
[[noreturn]] void become(char* const* arguments, int out, int err, pid_t parent, int death) {
  ::prctl(PR_SET_PDEATHSIG, death);
  if (::getppid() != parent) ::_exit(kNotStarted);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execv("/proc/self/exe", arguments);
  ::_exit(kNotStarted);
}

/// A lock that the command inherits and holds until its end. A release that was killed leaves a command that is about to be killed, too; what
/// that one has locked is not free before it has ended.
class Alone {
 public:
  explicit Alone(const std::string& folder) : fd_(::open((folder + "/.running").c_str(), O_RDWR | O_CREAT, 0644)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0)
      if (wait_for_end_signal(kBetweenLooks)) {
        ::close(fd_);
        throw ReleaseInterrupted{};
      }
  }
  ~Alone() {
    if (fd_ >= 0) ::close(fd_);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  bool is_locked() const { return fd_ >= 0; }

 private:
  const int fd_;
};

std::string read_output(const std::string& path) {
  const auto text = read_file(path, kMostOutput);
  return text ? *text : "";
}

}  // namespace

std::string ChildEnd::why() const {
  if (signal != 0) return fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal));
  std::string text = err;
  while (text.ends_with('\n')) text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  constexpr std::string_view kName = "serin ";
  if (const size_t colon = text.find(": "); text.starts_with(kName) && colon != std::string::npos && text.find(' ', kName.size()) > colon)
    text.erase(0, colon + 2);
  return text.empty() ? fmt::format("ended with exit code {}", exit_code) : text;
}

Result<pid_t> start_serin(const std::vector<std::string>& arguments, const std::string& out, const std::string& err, bool append,
                          int death) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC);
  const int out_fd = ::open(out.c_str(), flags, 0644), err_fd = ::open(err.c_str(), flags, 0644);
  std::vector<std::string> words = {"serin"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = out_fd < 0 || err_fd < 0 ? -1 : ::fork();
  const int failure = errno;
  if (child == 0) become(pointers.data(), out_fd, err_fd, parent, death);
  if (out_fd >= 0) ::close(out_fd);
  if (err_fd >= 0) ::close(err_fd);
  if (child < 0) return Error{Code::kIo, fmt::format("serin {} cannot be started: {}", arguments.front(), std::strerror(failure))};
  return pid_t{child};
}

Result<ChildEnd> run_serin(const std::vector<std::string>& arguments, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const Alone alone(folder);
  if (!alone.is_locked()) return Error{Code::kIo, fmt::format("{}: {}", folder, std::strerror(errno))};
  const std::string out_file = fmt::format("{}/{}.out", folder, arguments.front()),
                    err_file = fmt::format("{}/{}.err", folder, arguments.front());
  SERIN_TRY(const pid_t child, start_serin(arguments, out_file, err_file, /*append=*/false, SIGKILL));
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (!wait_for_end_signal(kBetweenLooks)) continue;
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    throw ReleaseInterrupted{};
  }
  ChildEnd end{.out = read_output(out_file), .err = read_output(err_file)};
  if (WIFSIGNALED(status))
    end.signal = WTERMSIG(status);
  else
    end.exit_code = WEXITSTATUS(status);
  return end;
}

}  // namespace serin::cli
