// serve_flags.h: declares the flags of `serin serve`.
#pragma once

#include "runtime/cli/serve/serve_options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

/// Binds the flags to `options`, which must outlive the command.
void add_serve_flags(CLI::App& command, ServeOptions& options);

}  // namespace serin::cli
