// access_log.h: reads the traffic for a rehearsal from an access log.
//
// It reads three formats and recognises the format by the first line:
//   {"time": "2026-02-03T04:05:06.789Z", "status": 200, "request_time": 0.012}     JSON: nginx, Envoy, Caddy ... (names in access_log.cc)
//   192.0.2.7 - - [03/Feb/2026:04:05:06 +0000] "POST / HTTP/1.1" 200 17 "-" "curl" 0.012      combined format, then $request_time
//   time,status,latency_ms                                                         CSV with such a head; time in seconds
#pragma once

#include <cstddef>
#include <string>

#include "router/rollout/rehearsal.h"
#include "runtime/base/result.h"

namespace serin::cli {

struct AccessLog {
  rollout::Recording recording;
  size_t lines = 0, skipped = 0;  ///< skipped: lines from which no request could be read
};

/// Returns kInvalidArgument if nothing, or less than half, can be read. The message shows the first such line.
Result<AccessLog> read_access_log(const std::string& path);

}  // namespace serin::cli
