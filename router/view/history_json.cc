#include "router/view/history_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "runtime/net/http.h"

namespace serin::router {

using net::json_quote;

std::string percent(uint32_t ppm) { return fmt::format("{}", static_cast<double>(ppm) / 10'000); }

std::string utc(int64_t wall_ms) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(wall_ms / 1000)), wall_ms % 1000);
}

std::string history_entry_json(const store::HistoryEntry& entry) {
  return fmt::format(
      R"({{"id":{},"time":"{}","wall_ms":{},"service":{},"rollout":{},"event":{},"actor":{},"detail":{},"weight":{},"weight_ppm":{},)"
      R"("previous":"{}","digest":"{}"}})",
      entry.id, utc(entry.wall_ms), entry.wall_ms, json_quote(entry.service), json_quote(entry.rollout), json_quote(entry.event),
      json_quote(entry.actor), json_quote(entry.detail), percent(entry.weight_ppm), entry.weight_ppm, entry.previous, entry.digest);
}

}  // namespace serin::router
