// serve_as.h: runs `serin serve` with another server's command line.
//
// It is called as `serin serve --as tritonserver --model-repository=/models`, or by a link of that name. The other server's flags, ports
// and defaults have the same meaning as there. The log names flags that have no meaning here; a flag that restricts access and has no
// equivalent is refused. Serin's own flags are accepted too, unless the names clash.
#pragma once

#include <optional>

#include "runtime/serving/settings/dialect.h"

namespace serin::cli {

/// Finds the dialect by argv[0], or by --as after `serve`. Returns nothing for Serin's own command line, and never kSerin.
std::optional<serving::Dialect> dialect_of(int argc, char** argv);
/// Returns the exit code.
int serve_as(serving::Dialect dialect, int argc, char** argv);

}  // namespace serin::cli
