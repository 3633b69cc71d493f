// ready_file.h: reports that a long-running command is ready, and handles the signals that end it.
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

/// Writes {"pid", "http", "grpc", "metrics", "admin"} (the ports that exist) in one step. Does nothing if `path` is empty.
Status write_ready_file(const std::string& path, const Ports& ports);

/// Removes the ready file of an earlier process, because a process that waits for the file waits for this one. Other files stay.
void remove_stale_ready_file(const std::string& path);
/// Called when this process is no longer ready. A file that a successor has written meanwhile stays.
void remove_own_ready_file(const std::string& path);

/// Blocks SIGTERM and SIGINT for every thread started afterwards; call it first in the main thread. SIGPIPE is ignored, and so are SIGUSR1
/// and SIGUSR2, which log rotation often sends.
void block_end_signals();
void block_signal(int signal);
/// Raises the limit as far as the system allows; the default is meant for programs that wait with select().
void raise_descriptor_limit();
/// Waits for SIGTERM or SIGINT, or until `look`, which runs every few seconds, returns false. Runs `reload` at each SIGHUP, which must be
/// blocked too.
void wait_for_end_signal(const std::function<void()>& reload, const std::function<bool()>& look);
/// Waits for SIGTERM or SIGINT for at most `seconds`; returns true if one came.
bool wait_for_end_signal(double seconds);

/// Whether one of them has come and is still pending.
bool end_signal_is_pending();

/// For times in which the thread that waits for signals is busy. While this object lives, SIGTERM or SIGINT run `last` and end the program
/// with exit code 0.
class EndsAtOnce {
 public:
  explicit EndsAtOnce(std::function<void()> last);
  ~EndsAtOnce();

 private:
  std::atomic<bool> over_{false};
  std::thread watch_;
};

/// Passes "text"/"json" and "debug".."error" to log::configure; the error names the flag.
Status configure_log(const std::string& format, const std::string& level);

}  // namespace serin::cli
