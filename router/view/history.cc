#include "router/view/history.h"

#include <fmt/chrono.h>

#include <ctime>

namespace serin::router::view {

std::string utc(int64_t wall_ms) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(wall_ms / 1000)), wall_ms % 1000);
}

double percent(uint32_t ppm) { return static_cast<double>(ppm) / 10'000; }

HistoryEntry view_of(const store::HistoryEntry& entry) { return {entry, utc(entry.wall_ms), percent(entry.weight_ppm)}; }

}  // namespace serin::router::view
