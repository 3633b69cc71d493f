// sqlite_rows.cc: reads and writes rows. Rows that decide where traffic goes carry a digest of their columns. A flipped bit inside a row is
// as much damage as a torn page, and SQLite detects only the latter.

#include "router/store/sqlite_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/mutex.h"
#include "router/store/digest.h"
#include "router/store/history_chain.h"

namespace serin::store {
namespace {

int64_t signed_of(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t unsigned_of(int64_t value) { return static_cast<uint64_t>(value); }
/// SQLite stores NaN as NULL, which no column here takes.
double stored(double value) { return std::isnan(value) ? 0 : value; }

int64_t digest_of(const ServiceRecord& record) {
  return signed_of(digest(fmt::format("{}\n{}\n{}", record.service, record.stable, record.epoch)));
}

int64_t digest_of(const RolloutRecord& record) {
  const rollout::State& s = record.report.state;
  return signed_of(digest(fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", s.service, s.id, s.stable, s.canary, s.epoch,
                                      rollout::phase_name(s.phase), s.step, s.weight_ppm, s.shadow_ppm, s.cause, s.reason, record.spec)));
}

Error damaged_row(const std::string& what) { return Error{Code::kCorrupt, what + ": the row contradicts its digest"}; }

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(Database database) : database_(std::move(database)) {}

  Result<std::vector<ServiceRecord>> load() override;
  Status save(const Change& change) override;
  Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) override;
  Result<std::vector<HistoryEntry>> history_after(int64_t id, size_t limit) override;
  Result<std::optional<std::string>> note(const std::string& name) override;
  Status set_note(const std::string& name, const std::string& text) override;
  Result<std::optional<VerdictEntry>> verdict(const std::string& id) override;

 private:
  Result<std::optional<RolloutRecord>> load_rollout(const std::string& service) SERIN_REQUIRES(mutex_);
  Status save_rollout(const RolloutRecord& record) SERIN_REQUIRES(mutex_);
  Status save_evidence(const std::string& service, const rollout::Report& report) SERIN_REQUIRES(mutex_);
  Status append(const std::string& service, std::vector<HistoryEntry> entries) SERIN_REQUIRES(mutex_);
  Status forget_old_history(const std::string& service) SERIN_REQUIRES(mutex_);
  Status save_verdicts(const std::string& service, const std::vector<VerdictEntry>& verdicts) SERIN_REQUIRES(mutex_);

  Status write(const Change& change) SERIN_REQUIRES(mutex_);

  Mutex mutex_;
  Database database_ SERIN_GUARDED_BY(mutex_);
  std::optional<Error> beyond_ SERIN_GUARDED_BY(mutex_);  // why nothing is written any more
};

Result<std::vector<ServiceRecord>> SqliteStore::load() {
  const MutexLock lock(mutex_);
  std::vector<ServiceRecord> services;
  SERIN_TRY(Statement select, database_.prepare("SELECT name, stable, epoch, digest FROM services ORDER BY name"));
  while (true) {
    SERIN_TRY(const bool row, select.step());
    if (!row) return services;
    ServiceRecord record{.service = select.text(0), .stable = select.text(1), .epoch = unsigned_of(select.integer(2))};
    if (digest_of(record) != select.integer(3)) return damaged_row("service '" + record.service + "'");
    SERIN_TRY(record.rollout, load_rollout(record.service));
    services.push_back(std::move(record));
  }
}

Result<std::optional<RolloutRecord>> SqliteStore::load_rollout(const std::string& service) {
  SERIN_TRY(
      Statement select,
      database_.prepare("SELECT id, stable, canary, epoch, phase, step, weight_ppm, shadow_ppm, cause, reason, spec, started_wall_ms, "
                        "seconds, stable_answers, canary_answers, shadow_answers, digest FROM rollouts WHERE service = ?"));
  select.bind(1, service);
  SERIN_TRY(const bool row, select.step());
  if (!row) return std::optional<RolloutRecord>();

  RolloutRecord record;
  rollout::State& state = record.report.state;
  state = {.id = select.text(0),
           .service = service,
           .stable = select.text(1),
           .canary = select.text(2),
           .epoch = unsigned_of(select.integer(3)),
           .step = static_cast<int>(select.integer(5)),
           .weight_ppm = static_cast<uint32_t>(select.integer(6)),
           .shadow_ppm = static_cast<uint32_t>(select.integer(7)),
           .cause = select.text(8),
           .reason = select.text(9)};
  const auto phase = rollout::find_phase(select.text(4));
  if (!phase) return damaged_row("rollout '" + state.id + "'");
  state.phase = *phase;
  record.spec = select.text(10);
  record.started_wall_ms = select.integer(11);
  record.seconds = select.number(12);
  record.report.stable_answers = unsigned_of(select.integer(13));
  record.report.canary_answers = unsigned_of(select.integer(14));
  record.report.shadow_answers = unsigned_of(select.integer(15));
  if (digest_of(record) != select.integer(16)) return damaged_row("rollout '" + state.id + "'");

  SERIN_TRY(Statement evidence, database_.prepare("SELECT guard, bits, bits_to_trip, stable_events, canary_events FROM evidence "
                                                  "WHERE service = ? ORDER BY position"));
  evidence.bind(1, service);
  while (true) {
    SERIN_TRY(const bool more, evidence.step());
    if (!more) return std::optional(std::move(record));
    record.report.evidence.push_back({.guard = evidence.text(0),
                                      .bits = evidence.number(1),
                                      .bits_to_trip = evidence.number(2),
                                      .stable_events = unsigned_of(evidence.integer(3)),
                                      .canary_events = unsigned_of(evidence.integer(4))});
  }
}

/// Where the disk could not make sure of a write, what is on it is unknown, and asking again is answered with yes though pages were lost
/// (Rebello and others, "Can applications recover from fsync failures?", 2020). So nothing more is written; the next start looks at the file.
Status SqliteStore::save(const Change& change) {
  const MutexLock lock(mutex_);
  if (beyond_) return *beyond_;
  Status written = write(change);
  if (written || !database_.sync_failed()) return written;
  beyond_ =
      Error{Code::kIo, written.error().message + "; it is unknown which data reached the disk: restart the router once the disk works"};
  return *beyond_;
}

Status SqliteStore::write(const Change& change) {
  SERIN_TRY(Transaction transaction, Transaction::begin(database_));
  SERIN_TRY(Statement upsert,
            database_.prepare("INSERT INTO services (name, stable, epoch, digest) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO "
                              "UPDATE SET stable = excluded.stable, epoch = excluded.epoch, digest = excluded.digest"));
  const ServiceRecord& record = change.record;
  upsert.bind(1, record.service);
  upsert.bind(2, record.stable);
  upsert.bind(3, signed_of(record.epoch));
  upsert.bind(4, digest_of(record));
  SERIN_CHECK(upsert.run());
  if (record.rollout) SERIN_CHECK(save_rollout(*record.rollout));
  if (!change.history.empty()) SERIN_CHECK(append(record.service, change.history));
  SERIN_CHECK(forget_old_history(record.service));
  if (!change.verdicts.empty()) SERIN_CHECK(save_verdicts(record.service, change.verdicts));
  return transaction.commit();
}

Status SqliteStore::save_rollout(const RolloutRecord& record) {
  const rollout::State& state = record.report.state;
  SERIN_TRY(Statement insert,
            database_.prepare("INSERT OR REPLACE INTO rollouts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.bind(1, state.service);
  insert.bind(2, state.id);
  insert.bind(3, state.stable);
  insert.bind(4, state.canary);
  insert.bind(5, signed_of(state.epoch));
  insert.bind(6, rollout::phase_name(state.phase));
  insert.bind(7, int64_t{state.step});
  insert.bind(8, int64_t{state.weight_ppm});
  insert.bind(9, int64_t{state.shadow_ppm});
  insert.bind(10, state.cause);
  insert.bind(11, state.reason);
  insert.bind(12, record.spec);
  insert.bind(13, record.started_wall_ms);
  insert.bind(14, stored(record.seconds));
  insert.bind(15, signed_of(record.report.stable_answers));
  insert.bind(16, signed_of(record.report.canary_answers));
  insert.bind(17, signed_of(record.report.shadow_answers));
  insert.bind(18, digest_of(record));
  SERIN_CHECK(insert.run());
  return save_evidence(state.service, record.report);
}

Status SqliteStore::save_evidence(const std::string& service, const rollout::Report& report) {
  SERIN_TRY(Statement clear, database_.prepare("DELETE FROM evidence WHERE service = ?"));
  clear.bind(1, service);
  SERIN_CHECK(clear.run());
  SERIN_TRY(Statement insert, database_.prepare("INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?)"));
  for (int64_t position = 0; const rollout::Evidence& evidence : report.evidence) {
    insert.bind(1, service);
    insert.bind(2, position++);
    insert.bind(3, evidence.guard);
    insert.bind(4, stored(evidence.bits));
    insert.bind(5, stored(evidence.bits_to_trip));
    insert.bind(6, signed_of(evidence.stable_events));
    insert.bind(7, signed_of(evidence.canary_events));
    SERIN_CHECK(insert.run());
    insert.reset();
  }
  return {};
}

Status SqliteStore::append(const std::string& service, std::vector<HistoryEntry> entries) {
  SERIN_TRY(Statement last, database_.prepare("SELECT digest FROM history WHERE service = ? ORDER BY id DESC LIMIT 1"));
  last.bind(1, service);
  SERIN_TRY(const bool any, last.step());
  chain(entries, any ? last.text(0) : "");
  SERIN_TRY(Statement insert, database_.prepare("INSERT INTO history (wall_ms, service, rollout, event, actor, detail, weight_ppm, "
                                                "previous, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  for (const HistoryEntry& entry : entries) {
    insert.bind(1, entry.wall_ms);
    insert.bind(2, entry.service);
    insert.bind(3, entry.rollout);
    insert.bind(4, entry.event);
    insert.bind(5, entry.actor);
    insert.bind(6, entry.detail);
    insert.bind(7, int64_t{entry.weight_ppm});
    insert.bind(8, entry.previous);
    insert.bind(9, entry.digest);
    SERIN_CHECK(insert.run());
    insert.reset();
  }
  return {};
}

Status SqliteStore::forget_old_history(const std::string& service) {
  SERIN_TRY(Statement clear,
            database_.prepare("DELETE FROM history WHERE service = ?1 AND id <= (SELECT id FROM history WHERE service = ?1 "
                              "ORDER BY id DESC LIMIT 1 OFFSET ?2)"));
  clear.bind(1, service);
  clear.bind(2, signed_of(kHistoryLimit));
  return clear.run();
}

Status SqliteStore::save_verdicts(const std::string& service, const std::vector<VerdictEntry>& verdicts) {
  SERIN_TRY(Statement insert, database_.prepare("INSERT OR REPLACE INTO verdicts (id, service, wall_ms, json) VALUES (?, ?, ?, ?)"));
  for (const VerdictEntry& verdict : verdicts) {
    insert.bind(1, verdict.id);
    insert.bind(2, service);
    insert.bind(3, verdict.wall_ms);
    insert.bind(4, verdict.json);
    SERIN_CHECK(insert.run());
    insert.reset();
  }
  SERIN_TRY(Statement clear,
            database_.prepare("DELETE FROM verdicts WHERE service = ?1 AND rowid NOT IN "
                              "(SELECT rowid FROM verdicts WHERE service = ?1 ORDER BY wall_ms DESC, rowid DESC LIMIT ?2)"));
  clear.bind(1, service);
  clear.bind(2, signed_of(kVerdictLimit));
  return clear.run();
}

Result<std::optional<VerdictEntry>> SqliteStore::verdict(const std::string& id) {
  const MutexLock lock(mutex_);
  SERIN_TRY(Statement select, database_.prepare("SELECT id, wall_ms, json FROM verdicts WHERE id = ?"));
  select.bind(1, id);
  SERIN_TRY(const bool row, select.step());
  if (!row) return std::optional<VerdictEntry>();
  return std::optional(VerdictEntry{.id = select.text(0), .wall_ms = select.integer(1), .json = select.text(2)});
}

/// The rows of a statement that selects id, wall_ms, service, rollout, event, actor, detail, weight_ppm, previous and digest.
Result<std::vector<HistoryEntry>> read_history(Statement& select) {
  std::vector<HistoryEntry> entries;
  while (true) {
    SERIN_TRY(const bool row, select.step());
    if (!row) return entries;
    entries.push_back({.id = select.integer(0),
                       .wall_ms = select.integer(1),
                       .service = select.text(2),
                       .rollout = select.text(3),
                       .event = select.text(4),
                       .actor = select.text(5),
                       .detail = select.text(6),
                       .weight_ppm = static_cast<uint32_t>(select.integer(7)),
                       .previous = select.text(8),
                       .digest = select.text(9)});
  }
}

Result<std::vector<HistoryEntry>> SqliteStore::history(const std::string& service, size_t limit) {
  const MutexLock lock(mutex_);
  SERIN_TRY(Statement select,
            database_.prepare(
                "SELECT * FROM (SELECT id, wall_ms, service, rollout, event, actor, detail, weight_ppm, previous, digest FROM history "
                "WHERE service = ? ORDER BY id DESC LIMIT ?) ORDER BY id"));
  select.bind(1, service);
  select.bind(2, signed_of(std::min(limit, kHistoryLimit)));
  return read_history(select);
}

Result<std::vector<HistoryEntry>> SqliteStore::history_after(int64_t id, size_t limit) {
  const MutexLock lock(mutex_);
  SERIN_TRY(Statement select,
            database_.prepare("SELECT id, wall_ms, service, rollout, event, actor, detail, weight_ppm, previous, digest FROM history "
                              "WHERE id > ? ORDER BY id LIMIT ?"));
  select.bind(1, id);
  select.bind(2, signed_of(std::min(limit, kHistoryLimit)));
  return read_history(select);
}

Result<std::optional<std::string>> SqliteStore::note(const std::string& name) {
  const MutexLock lock(mutex_);
  SERIN_TRY(Statement select, database_.prepare("SELECT text FROM notes WHERE name = ?"));
  select.bind(1, name);
  SERIN_TRY(const bool row, select.step());
  return row ? std::optional(select.text(0)) : std::nullopt;
}

Status SqliteStore::set_note(const std::string& name, const std::string& text) {
  const MutexLock lock(mutex_);
  SERIN_TRY(Statement upsert, database_.prepare("INSERT OR REPLACE INTO notes (name, text) VALUES (?, ?)"));
  upsert.bind(1, name);
  upsert.bind(2, text);
  return upsert.run();
}

}  // namespace

std::unique_ptr<Store> make_sqlite_store(Database database) { return std::make_unique<SqliteStore>(std::move(database)); }

}  // namespace serin::store
