// history_json.h: Formats one audit log entry as JSON, the same for the admin API, log collectors and webhooks.
#pragma once

#include <cstdint>
#include <string>

#include "router/store/store.h"

namespace serin::router {

std::string history_entry_json(const store::HistoryEntry& entry);
/// "2026-02-03T04:05:06.789Z"
std::string utc(int64_t wall_ms);
/// Percent with at most four decimals, as the user gave it.
std::string percent(uint32_t ppm);

}  // namespace serin::router
