// ready_file.h: how a long-running command says that it is ready, and how it is told to end.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "runtime/base/result.h"

namespace serin::cli {

struct Ports {
  std::optional<uint16_t> http, grpc, metrics, admin;
};

/// Writes {"pid", "http", "grpc", "metrics", "admin"} (those that there are) in one step; nothing where `path` is empty.
Status write_ready_file(const std::string& path, const Ports& ports);

/// Takes away what a process before this one left there: whoever waits for the file waits for this one. What is no such file stays.
void remove_stale_ready_file(const std::string& path);
/// Once this process is not ready any more. What a successor has written there meanwhile stays.
void remove_own_ready_file(const std::string& path);

/// Blocks SIGTERM and SIGINT for every thread started afterwards; call first in main thread. SIGPIPE is ignored, and so are SIGUSR1 and
/// SIGUSR2: who rotates logs sends them by habit.
void block_end_signals();
void block_signal(int signal);
/// As many as the system lets us have: what it gives by itself is meant for programs that wait with select().
void raise_descriptor_limit();
/// Waits for SIGTERM or SIGINT, or until `look`, which is run every few seconds, answers false; meanwhile runs `reload` at each SIGHUP, which must be blocked, too.
void wait_for_end_signal(const std::function<void()>& reload, const std::function<bool()>& look);
/// Waits for SIGTERM or SIGINT for at most so long; true where one came.
bool wait_for_end_signal(double seconds);

/// Whether either has come that nobody has waited for yet.
bool end_signal_is_pending();

/// For times in which the thread that waits for them is busy: while it lives, SIGTERM or SIGINT run `last` and end the program, with exit code 0.
class EndsAtOnce {
 public:
  explicit EndsAtOnce(std::function<void()> last);
  ~EndsAtOnce();

 private:
  std::atomic<bool> over_{false};
  std::thread watch_;
};

/// "text"/"json" and "debug".."error" -> log::configure; the error names the flag.
Status configure_log(const std::string& format, const std::string& level);

}  // namespace serin::cli
