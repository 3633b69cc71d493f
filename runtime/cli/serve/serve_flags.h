// serve_flags.h: the flags of `serin serve`.
#pragma once

#include "runtime/cli/commands.h"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

/// Binds them to `options`, which the command outlives not.
void add_serve_flags(CLI::App& command, ServeOptions& options);

}  // namespace serin::cli
