// server_settings.h: the log settings that clients may read and change: Triton's extension "logging".
//
// Clients may not change the log file: a server that writes to a file named by a client could write to any file (CVE-2024-0087,
// CVE-2024-0100).
#pragma once

#include "runtime/protocol/json/flat_json.h"

namespace serin::serving {

protocol::FlatValues log_settings();
/// Applies all changes or none. kCorrupt (a value of the wrong type), kInvalidArgument, kPermissionDenied (log_file).
Status change_log_settings(const protocol::FlatValues& changes);

}  // namespace serin::serving
