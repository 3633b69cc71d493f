// server_settings.h: what the server logs, that clients may look at and change: Triton's extension "logging".
//
// Where lines go is not theirs to say: a server that writes to a file which a client names writes to any file (CVE-2024-0087, CVE-2024-0100).
#pragma once

#include "runtime/protocol/json/flat_json.h"

namespace serin::serving {

protocol::FlatValues log_settings();
/// All of them or none. kCorrupt (another type than the setting has), kInvalidArgument, kPermissionDenied (log_file).
Status change_log_settings(const protocol::FlatValues& changes);

}  // namespace serin::serving
