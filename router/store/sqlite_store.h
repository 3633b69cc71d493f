// sqlite_store.h: The store of a single router: one SQLite file.
#pragma once

#include <memory>
#include <string>

#include "router/store/store.h"

namespace serin::store {

struct Opened {
  std::unique_ptr<Store> store;
  std::string damage;     ///< the damage in the file found; empty: none
  std::string set_aside;  ///< the path of that file now
};

/// A damaged file is renamed ("<path>.corrupt-<time>") and a new one is created. Everything else is an error and the file
/// stays: a directory or another program's database in its place (kInvalidArgument), a newer Serin's (kUnsupported), no permission, no
/// disk.
/// Requires the lock (lock_file.h).
Result<Opened> open_sqlite_store(const std::string& path);

}  // namespace serin::store
