// sqlite_schema.h: whose file it is, of which age, and how it becomes one of today's.
#pragma once

#include <cstdint>

#include "router/store/sqlite.h"

namespace serin::store {

/// 0 for an empty file. Nothing is written. kInvalidArgument: another program's; kUnsupported: a newer Serin's; kCorrupt.
Result<int64_t> schema_version(Database& database);
/// From that version to the current one.
Status migrate(Database& database, int64_t version);

}  // namespace serin::store
