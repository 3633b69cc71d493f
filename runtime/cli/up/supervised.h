// supervised.h: a command of this program that is to run for as long as this process does.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace serin::cli {

/// Not thread-safe. Needs block_end_signals(). A process whose supervisor is killed gets SIGTERM.
class Supervised {
 public:
  struct Ports {
    uint16_t http = 0, grpc = 0, admin = 0;  ///< 0: it has none
  };

  /// `name`: of its log and its ready file in `folder`.
  Supervised(std::string name, std::string folder, std::vector<std::string> arguments);
  Supervised(const Supervised&) = delete;
  Supervised& operator=(const Supervised&) = delete;
  ~Supervised();

  Status start();
  /// Its ports; nothing: it is not ready yet.
  std::optional<Ports> ports() const;
  /// Waits for its ports. Nothing: it has ended, or, if it is still running(), the time is over. Throws ReleaseInterrupted.
  std::optional<Ports> wait_ready(std::chrono::seconds limit);
  /// Starts it again if it has ended, after one second, then two, four, up to 30. Returns a sentence when it finds that it has ended.
  std::optional<std::string> look();
  bool running() const { return pid_ > 0; }
  void signal(int number) const;
  /// Ends it: SIGTERM, and SIGKILL after 40 seconds.
  void end();

  const std::string& name() const { return name_; }
  const std::string& log() const { return log_; }
  pid_t pid() const { return pid_; }  ///< 0: it does not run
  std::vector<std::string>& arguments() { return arguments_; }

 private:
  bool reaped(int& status);
  std::string name_, log_, ready_;
  std::vector<std::string> arguments_;
  pid_t pid_ = 0;
  std::chrono::steady_clock::time_point started_, again_ = std::chrono::steady_clock::time_point::max();
  std::chrono::seconds pause_{1};
};

}  // namespace serin::cli
