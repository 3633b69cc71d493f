// wall_clock.h: The time of records, log lines and draws. No decision of the judge uses it.
#pragma once

#include <chrono>
#include <cstdint>

namespace serin::router {

/// Unix time.
inline int64_t wall_milliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace serin::router
