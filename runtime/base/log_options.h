// log_options.h: reads and changes parts of the log's configuration while the program runs.
//
// options() returns the argument of the last log::configure().
#pragma once

#include <bitset>
#include <cstdint>
#include <string>

#include "runtime/base/log.h"
#include "runtime/base/result.h"

namespace serin::log {

Options options();

/// Levels in this set, indexed by Level, are not written even if the threshold allows them. The set survives configure().
using Levels = std::bitset<8>;
void mute(Levels levels);
Levels muted();

/// Settings of other servers' logging APIs that have no effect here; they are stored so that clients read back what they set. Serin has one
/// debug level, and lines of text always begin with an ISO 8601 time.
struct Asked {
  int32_t verbosity = 0;
  bool iso8601 = false;
};
void set_asked(Asked asked);
Asked asked();

/// From now on, lines are appended to that file instead of stderr, or in addition to stderr if `stderr_too`. Returns kIo if it cannot be
/// opened.
Status write_to(const std::string& path, bool stderr_too);
/// Empty if there is no log file.
std::string file();

}  // namespace serin::log
