// sqlite_store.h: the store of a router that stands alone: one SQLite file.
#pragma once

#include <memory>
#include <string>

#include "router/store/store.h"

namespace serin::store {

struct Opened {
  std::unique_ptr<Store> store;
  std::string damage;     ///< what was wrong with the file that was there; empty: nothing
  std::string set_aside;  ///< where that file is now
};

/// A damaged file is moved out of the way ("<path>.corrupt-<time>") and a new one begun. What is not damage is an error and the file stays:
/// a directory or another program's database in its place (kInvalidArgument), one of a newer Serin (kUnsupported), no permission, no disk.
/// Requires the lock (lock_file.h).
Result<Opened> open_sqlite_store(const std::string& path);

}  // namespace serin::store
