// log_options.h: what the log was last told (log::configure) and where it goes, for who shows it or changes a part of it.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>

#include "runtime/base/log.h"
#include "runtime/base/result.h"

namespace serin::log {

Options options();

/// Single levels that are left out, by Level, though the threshold lets them through. Stays as it is over configure().
using Levels = std::bitset<8>;
void mute(Levels levels);
Levels muted();

/// What was asked for in words that mean more to another server's users, so that they read back what they set. Here all of kDebug's lines are of the first level, and lines
/// of text begin with a time of ISO 8601 whatever their form is called.
struct Asked {
  int32_t verbosity = 0;
  bool iso8601 = false;
};
void set_asked(Asked asked);
Asked asked();

/// Lines go to the end of that file from now on, in place of stderr or, where `stderr_too`, beside it. kIo where it cannot be opened.
Status write_to(const std::string& path, bool stderr_too);
/// Empty: there is none.
std::string file();

}  // namespace serin::log
