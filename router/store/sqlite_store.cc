// sqlite_store.cc: opens the store, with a rule for each kind of file that may be in its place, and writes its transactions.
//
// WAL with synchronous=FULL: a transaction is on disk when COMMIT returns, and a kill at any moment leaves the last committed state.

#include "router/store/sqlite_store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "router/store/sqlite_rows.h"
#include "router/store/sqlite_schema.h"

namespace serin::store {
namespace {

/// What the file's own header says (https://www.sqlite.org/fileformat.html, 1.3.2); the smallest there is where it has none.
int64_t page_size(const std::string& path) {
  constexpr int64_t kSmallest = 512, kLargest = 65'536;
  std::array<unsigned char, 18> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(head.data()), head.size());
  if (!file) return kSmallest;
  const int64_t size = head[16] << 8 | head[17];
  return size == 1 ? kLargest : std::max(size, kSmallest);
}

/// SQLite reads what is missing of the last page as zeros, and a file of less than a page as an empty one. Beside a log (-wal) that is its
/// right: a crash may have cut a checkpoint short, which the log repeats.
Status check_whole_pages(const std::string& path) {
  struct stat file{}, log{};
  if (::stat(path.c_str(), &file) != 0 || file.st_size % page_size(path) == 0) return {};
  if (::stat((path + "-wal").c_str(), &log) == 0 && log.st_size > 0) return {};
  return Error{Code::kCorrupt, fmt::format("ends in the middle of a page, after {} bytes", file.st_size)};
}

/// An undamaged store, or the reason why not; kCorrupt is damage.
Result<std::unique_ptr<Store>> open_undamaged(const std::string& path) {
  SERIN_CHECK(check_whole_pages(path));
  SERIN_TRY(Database database, Database::open(path));
  SERIN_TRY(const int64_t version, schema_version(database));
  SERIN_CHECK(database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON"));
  const auto verdict = database.text("PRAGMA quick_check(1)");
  if (!verdict) return verdict.error();
  if (*verdict != "ok") return Error{Code::kCorrupt, *verdict};
  SERIN_CHECK(migrate(database, version));
  auto store = make_sqlite_store(std::move(database));
  auto loaded = store->load();
  // Past the checks above a missing table or column is damage, too.
  if (!loaded) return Error{loaded.error().code == Code::kInternal ? Code::kCorrupt : loaded.error().code, loaded.error().message};
  return store;
}

Result<std::string> set_aside(const std::string& path) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string aside = fmt::format("{}.corrupt-{}", path, std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  if (std::rename(path.c_str(), aside.c_str()) != 0) return Error{Code::kIo, fmt::format("{} cannot be moved to {}", path, aside)};
  for (const char* suffix : {"-wal", "-shm"}) (void)std::rename((path + suffix).c_str(), (aside + suffix).c_str());
  return aside;
}

}  // namespace

Result<Opened> open_sqlite_store(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return Error{Code::kInvalidArgument, fmt::format("store {}: is not a regular file", path)};
  auto store = open_undamaged(path);
  if (store) return Opened{.store = *std::move(store)};
  if (store.error().code != Code::kCorrupt) return store.error().in("store " + path);

  Opened opened{.damage = store.error().message};
  SERIN_TRY(opened.set_aside, set_aside(path));
  auto fresh = open_undamaged(path);
  if (!fresh) return fresh.error().in("store " + path);
  opened.store = *std::move(fresh);
  return opened;
}

}  // namespace serin::store
