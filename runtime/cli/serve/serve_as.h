// serve_as.h: `serin serve` called as another server is: `serin serve --as tritonserver --model-repository=/models`, or by a link of that name.
//
// The other server's flags mean what they mean there, and so do the ports and defaults that follow from its name. What has no meaning here is named in the
// log; a flag that keeps callers out and has none here is refused. Serin's own flags are taken, too, where the names do not clash.
#pragma once

#include <optional>

#include "runtime/serving/settings/dialect.h"

namespace serin::cli {

/// By argv[0], or by --as behind `serve`. Nothing: called as itself. kSerin does not occur.
std::optional<serving::Dialect> dialect_of(int argc, char** argv);
/// The exit code.
int serve_as(serving::Dialect dialect, int argc, char** argv);

}  // namespace serin::cli
