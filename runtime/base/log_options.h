// log_options.h: what the log was last told (log::configure), for who shows it or changes a part of it.
#pragma once

#include <bitset>

#include "runtime/base/log.h"

namespace serin::log {

Options options();

/// Single levels that are left out, by Level, though the threshold lets them through. Stays as it is over configure().
using Levels = std::bitset<8>;
void mute(Levels levels);
Levels muted();

}  // namespace serin::log
