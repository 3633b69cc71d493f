// log.h: writes log lines, one for each event, as text for operators or JSON for collectors.
//
//   log::configure({.format = log::Format::kJson, .level = log::Level::kInfo});
//   log::info("model '{}' version {}: loaded in {} ms", name, version, ms);
//
// Lines go to stderr. Control characters in a message are escaped, so that a client cannot forge a line. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <bitset>
#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace serin::log {

enum class Level : uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class Format : uint8_t { kText, kJson };

struct Options {
  Format format = Format::kText;
  Level level = Level::kInfo;
};

void configure(const Options& options);
bool enabled(Level level);
/// Type-erased, so that callers compile without the logging library.
void write(Level level, fmt::string_view format, fmt::format_args args);

template <class... Args>
void debug(fmt::format_string<Args...> format, const Args&... args) {
  if (enabled(Level::kDebug)) write(Level::kDebug, format, fmt::make_format_args(args...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, const Args&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, format, fmt::make_format_args(args...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, const Args&... args) {
  if (enabled(Level::kWarning)) write(Level::kWarning, format, fmt::make_format_args(args...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, const Args&... args) {
  if (enabled(Level::kError)) write(Level::kError, format, fmt::make_format_args(args...));
}

// Changes while the program runs.

/// The argument of the last configure().
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
