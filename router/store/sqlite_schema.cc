// sqlite_schema.cc: creates the tables, and converts a file of an earlier version: one step after the other, in one transaction.

#include "router/store/sqlite_schema.h"

#include <fmt/format.h>

namespace serin::store {
namespace {

constexpr int64_t kApplicationId = 0x53524e31;  // "SRN1": says that the file is ours
constexpr int64_t kSchemaVersion = 4;

// One entry for each version of the schema: what brings the one before it there.
constexpr const char* kMigrations[kSchemaVersion] = {
    R"(CREATE TABLE services (
         name TEXT PRIMARY KEY, stable TEXT NOT NULL, epoch INTEGER NOT NULL, digest INTEGER NOT NULL) STRICT;
       CREATE TABLE rollouts (
         service TEXT PRIMARY KEY REFERENCES services (name), id TEXT NOT NULL, stable TEXT NOT NULL, canary TEXT NOT NULL, epoch INTEGER NOT NULL,
         phase TEXT NOT NULL, step INTEGER NOT NULL, weight_ppm INTEGER NOT NULL, shadow_ppm INTEGER NOT NULL, cause TEXT NOT NULL,
         reason TEXT NOT NULL, spec TEXT NOT NULL, started_wall_ms INTEGER NOT NULL, seconds REAL NOT NULL, stable_answers INTEGER NOT NULL,
         canary_answers INTEGER NOT NULL, shadow_answers INTEGER NOT NULL, digest INTEGER NOT NULL) STRICT;
       CREATE TABLE evidence (
         service TEXT NOT NULL REFERENCES services (name), position INTEGER NOT NULL, guard TEXT NOT NULL, bits REAL NOT NULL,
         bits_to_trip REAL NOT NULL, stable_events INTEGER NOT NULL, canary_events INTEGER NOT NULL, PRIMARY KEY (service, position)) STRICT;
       CREATE TABLE history (
         id INTEGER PRIMARY KEY AUTOINCREMENT, wall_ms INTEGER NOT NULL, service TEXT NOT NULL, rollout TEXT NOT NULL, event TEXT NOT NULL,
         actor TEXT NOT NULL, detail TEXT NOT NULL, weight_ppm INTEGER NOT NULL) STRICT;
       CREATE INDEX history_of_service ON history (service, id);)",
    R"(CREATE TABLE verdicts (
         id TEXT PRIMARY KEY, service TEXT NOT NULL REFERENCES services (name), wall_ms INTEGER NOT NULL, json TEXT NOT NULL) STRICT;
       CREATE INDEX verdicts_of_service ON verdicts (service, wall_ms);)",
    "CREATE TABLE notes (name TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;",
    R"(ALTER TABLE history ADD COLUMN previous TEXT NOT NULL DEFAULT '';
       ALTER TABLE history ADD COLUMN digest TEXT NOT NULL DEFAULT '';)"};

}  // namespace

Result<int64_t> schema_version(Database& database) {
  SERIN_TRY(const int64_t application, database.integer("PRAGMA application_id"));
  SERIN_TRY(const int64_t version, database.integer("PRAGMA user_version"));
  SERIN_TRY(const int64_t tables, database.integer("SELECT count(*) FROM sqlite_schema"));
  if (application == 0 && tables == 0) return 0;  // a new file, or one that the last start did not get to fill
  if (application != kApplicationId) return Error{Code::kInvalidArgument, "is another program's database"};
  if (version > kSchemaVersion)
    return Error{Code::kUnsupported,
                 fmt::format("was written by a newer serin (schema {}, this one reads up to {})", version, kSchemaVersion)};
  return version < 0 ? Result<int64_t>(Error{Code::kCorrupt, fmt::format("has schema {}", version)}) : version;
}

Status migrate(Database& database, int64_t version) {
  if (version == kSchemaVersion) return {};
  SERIN_TRY(Transaction transaction, Transaction::begin(database));
  for (int64_t v = version; v < kSchemaVersion; ++v) SERIN_CHECK(database.execute(kMigrations[v]));
  SERIN_CHECK(database.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, kSchemaVersion)));
  return transaction.commit();
}

}  // namespace serin::store
