// sqlite_rows.h: The store in an open, undamaged database with the current schema (sqlite_store.h ensures that).
#pragma once

#include <memory>

#include "router/store/sqlite.h"
#include "router/store/store.h"

namespace serin::store {

std::unique_ptr<Store> make_sqlite_store(Database database);

}  // namespace serin::store
