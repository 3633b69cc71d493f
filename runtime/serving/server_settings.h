// server_settings.h: settings of the server itself that clients may look at and change: Triton's extensions "logging" and "trace".
//
// Where lines go is not theirs to say: a server that writes to a file which a client names writes to any file (CVE-2024-0087, CVE-2024-0100). Traces are not
// built: their level is OFF, and any other is refused.
#pragma once

#include "runtime/protocol/flat_json.h"

namespace serin::serving {

protocol::FlatValues log_settings();
/// All of them or none. kInvalidArgument, kPermissionDenied (log_file).
Status change_log_settings(const protocol::FlatValues& changes);

protocol::FlatValues trace_settings();
/// kUnsupported: whatever would trace.
Status change_trace_settings(const protocol::FlatValues& changes);

}  // namespace serin::serving
