// failing_vfs.cc: a shim (https://www.sqlite.org/vfs.html, 2.3): each file is the system's, with a table of methods of its own in front.

#include "tests/router/store/failing_vfs.h"

#include <new>

namespace serin::store {
namespace {

struct File {
  sqlite3_file base;
  FailingVfs* disk;
  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
File* file_of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* below(sqlite3_file* file) { return file_of(file)->below(); }

int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
  const int outcome = file_of(file)->disk->outcome(FailingVfs::Call::kWrite);
  if (outcome == SQLITE_OK) return below(file)->pMethods->xWrite(below(file), bytes, count, at);
  if (count > 1) (void)below(file)->pMethods->xWrite(below(file), bytes, count / 2, at);  // as a full disk does: some of it
  return outcome;
}
int sync(sqlite3_file* file, int flags) {
  const int outcome = file_of(file)->disk->outcome(FailingVfs::Call::kSync);
  return outcome == SQLITE_OK ? below(file)->pMethods->xSync(below(file), flags) : outcome;
}
int truncate(sqlite3_file* file, sqlite3_int64 size) {
  const int outcome = file_of(file)->disk->outcome(FailingVfs::Call::kTruncate);
  return outcome == SQLITE_OK ? below(file)->pMethods->xTruncate(below(file), size) : outcome;
}

const sqlite3_io_methods kMethods = {
    .iVersion = 3,
    .xClose = [](sqlite3_file* f) { return below(f)->pMethods->xClose(below(f)); },
    .xRead = [](sqlite3_file* f, void* to, int n, sqlite3_int64 at) { return below(f)->pMethods->xRead(below(f), to, n, at); },
    .xWrite = write,
    .xTruncate = truncate,
    .xSync = sync,
    .xFileSize = [](sqlite3_file* f, sqlite3_int64* size) { return below(f)->pMethods->xFileSize(below(f), size); },
    .xLock = [](sqlite3_file* f, int lock) { return below(f)->pMethods->xLock(below(f), lock); },
    .xUnlock = [](sqlite3_file* f, int lock) { return below(f)->pMethods->xUnlock(below(f), lock); },
    .xCheckReservedLock = [](sqlite3_file* f, int* held) { return below(f)->pMethods->xCheckReservedLock(below(f), held); },
    .xFileControl = [](sqlite3_file* f, int op, void* with) { return below(f)->pMethods->xFileControl(below(f), op, with); },
    .xSectorSize = [](sqlite3_file* f) { return below(f)->pMethods->xSectorSize(below(f)); },
    .xDeviceCharacteristics = [](sqlite3_file* f) { return below(f)->pMethods->xDeviceCharacteristics(below(f)); },
    .xShmMap = [](sqlite3_file* f, int page, int size, int extend,
                  void volatile** at) { return below(f)->pMethods->xShmMap(below(f), page, size, extend, at); },
    .xShmLock = [](sqlite3_file* f, int offset, int n, int flags) { return below(f)->pMethods->xShmLock(below(f), offset, n, flags); },
    .xShmBarrier = [](sqlite3_file* f) { below(f)->pMethods->xShmBarrier(below(f)); },
    .xShmUnmap = [](sqlite3_file* f, int remove) { return below(f)->pMethods->xShmUnmap(below(f), remove); },
    .xFetch = [](sqlite3_file* f, sqlite3_int64 at, int n, void** to) { return below(f)->pMethods->xFetch(below(f), at, n, to); },
    .xUnfetch = [](sqlite3_file* f, sqlite3_int64 at, void* page) { return below(f)->pMethods->xUnfetch(below(f), at, page); }};

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* disk = static_cast<FailingVfs*>(vfs->pAppData);
  file->pMethods = nullptr;
  if (const int outcome = disk->outcome(FailingVfs::Call::kOpen); outcome != SQLITE_OK) return outcome;
  auto* opened = new (file) File{.base = {.pMethods = nullptr}, .disk = disk};
  const int result = disk->below()->xOpen(disk->below(), name, opened->below(), flags, out_flags);
  if (opened->below()->pMethods != nullptr) opened->base.pMethods = &kMethods;
  return result;
}

}  // namespace

FailingVfs::FailingVfs() : below_(sqlite3_vfs_find(nullptr)) {
  vfs_ = *below_;  // whatever is not about files it does itself
  vfs_.szOsFile = static_cast<int>(sizeof(File)) + below_->szOsFile;
  vfs_.zName = "failing";
  vfs_.xOpen = open;
  vfs_.pAppData = this;
  sqlite3_vfs_register(&vfs_, /*makeDflt=*/1);
}

FailingVfs::~FailingVfs() {
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(below_, /*makeDflt=*/1);
}

void FailingVfs::fail_after(Call call, int good, int code) {
  heal();
  failing_ = call;
  good_ = good;
  code_ = code;
}

void FailingVfs::heal() {
  for (auto& count : counts_) count = 0;
  code_ = SQLITE_OK;
}

int FailingVfs::outcome(Call call) {
  const int before = counts_[static_cast<size_t>(call)]++;
  return code_ != SQLITE_OK && call == failing_ && before >= good_ ? code_ : SQLITE_OK;
}

}  // namespace serin::store
