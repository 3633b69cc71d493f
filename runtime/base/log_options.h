// log_options.h: what the log was last told (log::configure), for who shows it or changes a part of it.
#pragma once

#include "runtime/base/log.h"

namespace serin::log {

Options options();

}  // namespace serin::log
