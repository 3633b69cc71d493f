// sqlite_rows.h: the store in a database that is open, undamaged and of today's schema (sqlite_store.h sees to that).
#pragma once

#include <memory>

#include "router/store/sqlite.h"
#include "router/store/store.h"

namespace serin::store {

std::unique_ptr<Store> make_sqlite_store(Database database);

}  // namespace serin::store
