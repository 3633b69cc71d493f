// sqlite_schema.h: Identifies the owner and schema version of a database file, and migrates it to the current version.
#pragma once

#include <cstdint>

#include "router/store/sqlite.h"

namespace serin::store {

/// 0 for an empty file. Writes nothing. kInvalidArgument: another program's file; kUnsupported: from a newer Serin; kCorrupt.
Result<int64_t> schema_version(Database& database);
/// Migrates from that version to the current one.
Status migrate(Database& database, int64_t version);

}  // namespace serin::store
