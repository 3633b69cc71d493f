// serve_flags.h: the flags of `serin serve`.
#pragma once

#include "runtime/cli/commands.h"

namespace CLI {
class App;
}

namespace serin::cli {

/// Binds them to `options`, which the command outlives not.
void add_serve_flags(CLI::App& command, ServeOptions& options);

}  // namespace serin::cli
