// store.h: The data that the router must still have after a restart, and the interface that saves it.
//
//   SERIN_TRY(auto services, store.load());
//   SERIN_CHECK(store.save({.record = now, .history = {event}}));      // one transaction, on disk when it returns
//
// Thread-safe. save() waits for the disk: never call it on the data path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/rollout.h"
#include "runtime/base/result.h"

namespace serin::store {

/// One line of the audit log.
struct HistoryEntry {
  int64_t id = 0;                                      ///< rises over all services; assigned by the store
  int64_t wall_ms = 0;                                 ///< Unix time in milliseconds
  std::string service, rollout, event, actor, detail;  ///< event: "started", "weight", "rolled_back", "promoted", "paused", ...
  uint32_t weight_ppm = 0;                             ///< of the canary, after the event
  std::string previous, digest;                        ///< assigned by the store: history_chain.h
};

struct RolloutRecord {
  rollout::Report report;  ///< state, answers and evidence; certificates and deciding events are not kept
  std::string spec;        ///< the output of print_spec
  int64_t started_wall_ms = 0;
  double seconds = 0;  ///< since it started, at the time of writing
};

struct ServiceRecord {
  std::string service, stable;
  uint64_t epoch = 0;
  std::optional<RolloutRecord> rollout;  ///< the current or the last one
};

/// The reason that a rollout ended, as JSON that replays (rollout/verdict_record.h).
struct VerdictEntry {
  std::string id;  ///< of the rollout: "digits-7"
  int64_t wall_ms = 0;
  std::string json;
};

struct Change {
  /// For routers that share their state: to be agreed on; false: only this router stores it.
  bool shared = true;
  ServiceRecord record;                ///< replaces the old record
  std::vector<HistoryEntry> history;   ///< appended
  std::vector<VerdictEntry> verdicts;  ///< appended; one of the same rollout is replaced
};

inline constexpr size_t kHistoryLimit = 10'000;  ///< entries kept for each service; the oldest go first
inline constexpr size_t kVerdictLimit = 100;     ///< the same for verdicts

class Store {
 public:
  virtual ~Store() = default;
  virtual Result<std::vector<ServiceRecord>> load() = 0;
  virtual Status save(const Change& change) = 0;
  /// The latest `limit` entries, oldest first.
  virtual Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) = 0;
  /// Entries of every service after the entry `id`, oldest first, at most `limit`: for followers of the audit log.
  virtual Result<std::vector<HistoryEntry>> history_after(int64_t id, size_t limit) = 0;
  /// A line that a follower of the audit log stores, such as its position; nothing if there is none with that name.
  virtual Result<std::optional<std::string>> note(const std::string& name) = 0;
  virtual Status set_note(const std::string& name, const std::string& text) = 0;
  /// Nothing if no rollout with that id has ended, or it is too long ago.
  virtual Result<std::optional<VerdictEntry>> verdict(const std::string& id) = 0;
};

}  // namespace serin::store
