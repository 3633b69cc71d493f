// log_options.h: what the log was last told (log::configure) and where it goes, for who shows it or changes a part of it.
#pragma once

#include <bitset>
#include <string>

#include "runtime/base/log.h"
#include "runtime/base/result.h"

namespace serin::log {

Options options();

/// Single levels that are left out, by Level, though the threshold lets them through. Stays as it is over configure().
using Levels = std::bitset<8>;
void mute(Levels levels);
Levels muted();

/// Lines go to the end of that file from now on, in place of stderr or, where `stderr_too`, beside it. kIo where it cannot be opened.
Status write_to(const std::string& path, bool stderr_too);
/// Empty: there is none.
std::string file();

}  // namespace serin::log
