// history.h: Entries of the audit log as the admin API, log collectors and webhooks have them, described once (runtime/base/schema.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "router/store/store.h"
#include "runtime/base/schema.h"

namespace serin::router::view {

struct HistoryEntry : store::HistoryEntry {
  std::string time;
  double weight = 0;
};
inline constexpr auto kHistoryEntry = schema::object<HistoryEntry>(
    "HistoryEntry", "A change of a service.", schema::field("id", &HistoryEntry::id, "Rises over all services.", {.least = 0}),
    schema::field("time", &HistoryEntry::time, "In UTC.", {.kind = "date-time"}),
    schema::field("wall_ms", &HistoryEntry::wall_ms, "The same as Unix time in milliseconds."),
    schema::field("service", &HistoryEntry::service, "Its name."), schema::field("rollout", &HistoryEntry::rollout, "Its id."),
    schema::field("event", &HistoryEntry::event, "started, weight, rolled_back, promoted, paused, ..."),
    schema::field("actor", &HistoryEntry::actor, "The person, pipeline or router that made the change."),
    schema::field("detail", &HistoryEntry::detail, "A sentence for users."),
    schema::field("weight", &HistoryEntry::weight, "Of the canary after the change, in percent.", {.least = 0, .most = 100}),
    schema::field("weight_ppm", &HistoryEntry::weight_ppm, "The same in parts per million.", {.least = 0, .most = 1'000'000}),
    schema::field("previous", &HistoryEntry::previous, "SHA-256 of the entry before, as hexadecimal digits; empty for the first."),
    schema::field("digest", &HistoryEntry::digest, "SHA-256 of this entry and of `previous`."));

struct History {
  std::string service;
  std::vector<HistoryEntry> history;
};
inline constexpr auto kHistory =
    schema::object<History>("History", "The audit log of one service.", schema::field("service", &History::service, "Its name."),
                            schema::field<kHistoryEntry>("history", &History::history, "The latest entries, oldest first."));

/// "2026-02-03T04:05:06.789Z"
std::string utc(int64_t wall_ms);
/// Percent, with at most four decimals.
double percent(uint32_t ppm);
HistoryEntry view_of(const store::HistoryEntry& entry);

}  // namespace serin::router::view
